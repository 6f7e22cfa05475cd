#!/usr/bin/env bash
# Let a build install as pip does on this machine: behind a mirror, with an own certificate
# authority, from folders of wheels. Prints options for podman's or buildah's build, one a line.
#
#   deploy/docker/host_pip.sh FILE       # pip's settings go there, and from there into no image
set -euo pipefail
file=${1:?file for the settings}
python=${PYTHON:-python3}

# Environment variables come first and win, as with pip. What one of them says of where pip's
# settings are does not hold in the build: they are in FILE there.
"$python" -m pip config list | "$python" -c '
import ast, sys
settings = {}
for line in sys.stdin:
    key, _, value = line.partition("=")
    name = key.rpartition(".")[2]
    if name == "config-file":
        continue
    settings.setdefault(name, " ".join(ast.literal_eval(value.strip()).split()))
print("[global]", *(f"{name} = {value}" for name, value in settings.items()), sep="\n")' >"$file"
echo "--secret=id=pip_conf,src=$file"
# Files and folders that the settings name. An index of files links to what lies beside it.
tr ' ' '\n' <"$file" | sed --quiet 's#^file://\(/.*\)/[^/]*/*$#\1#p; s#^/.*#&#p' | while read -r path; do
    [ ! -f "$path" ] || path=$(dirname "$path")
    if [ -d "$path" ] && [ "$path" != / ]; then echo "--volume=$path:$path:ro"; fi
done | sort -u
