#!/usr/bin/env bash
# A base image with Python 3.11 made of Debian's packages, for networks that reach no image registry:
#
#   deploy/docker/base_image.sh docker|podman|buildah NAME
#
# The same packages make the same layer, byte by byte. Needs root and mmdebstrap.
#
# Environment:
#   DEBIAN_SOURCES     where the packages are, as lines of apt's sources.list; default: where this
#                      machine has Debian's from, or else deb.debian.org
#   SOURCE_DATE_EPOCH  of files that no package brings; default 0
set -euo pipefail
engine=${1:?docker, podman or buildah}
name=${2:?name of the image}
suite=bookworm # its python3 is 3.11
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2016  # for apt
sources=${DEBIAN_SOURCES:-$(apt-get indextargets --format 'deb $(SITE) $(CODENAME) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' 'Component: main' | grep " $suite" | sort --unique || true)}
[ -n "$sources" ] || sources="deb http://deb.debian.org/debian $suite main
deb http://deb.debian.org/debian $suite-updates main
deb http://deb.debian.org/debian-security $suite-security main"
# Neither apt nor manuals nor translations: the image is never changed and nobody reads there.
# libstdc++6 is what the wheels of NumPy, ONNX Runtime and PyTorch expect of a system.
# Merged from the start, since the package that would merge /usr later brings all of Perl.
options=(--variant=essential '--include=usr-is-merged python3 python3-venv libstdc++6 ca-certificates'
    --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --aptopt='Apt::Install-Recommends "false"'
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*'
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright')
mmdebstrap "${options[@]}" "$suite" "$work/root.tar" - <<<"$sources" >"$work/log" 2>&1 ||
    { tail -5 "$work/log" >&2 && exit 1; }

path=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if [ "$engine" = buildah ]; then
    container=$(buildah from scratch)
    buildah add --quiet "$container" "$work/root.tar" / >/dev/null
    buildah config --env "$path" --cmd python3 "$container"
    buildah commit --quiet --rm --timestamp "$SOURCE_DATE_EPOCH" "$container" "$name" >/dev/null
else
    "$engine" import --change "ENV $path" --change 'CMD ["python3"]' "$work/root.tar" "$name" >/dev/null
fi
