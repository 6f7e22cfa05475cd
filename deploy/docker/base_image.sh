#!/usr/bin/env bash
# A base image with Python 3.11 made of Debian's packages, for networks that reach no image registry:
#
#   deploy/docker/base_image.sh docker|podman|buildah NAME
#
# Needs root and debootstrap. DEBIAN_MIRROR names another mirror than apt's own.
set -euo pipefail
engine=${1:?docker, podman or buildah}
name=${2:?name of the image}
suite=bookworm # its python3 is 3.11
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $suite" | head -1)}
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates \
    "$suite" "$work/root" "${mirror:-http://deb.debian.org/debian}" >"$work/log" 2>&1 ||
    { tail -5 "$work/log" >&2 && exit 1; }
# Package lists and caches: no program of the image reads them.
rm -rf "$work"/root/var/cache/apt/* "$work"/root/var/lib/apt/lists/* "$work"/root/var/log/*
path=PATH=/usr/local/bin:/usr/bin:/bin
if [ "$engine" = buildah ]; then
    container=$(buildah from scratch)
    buildah add --quiet "$container" "$work/root" / >/dev/null
    buildah config --env "$path" --cmd python3 "$container"
    buildah commit --quiet --rm "$container" "$name" >/dev/null
else
    tar --directory "$work/root" --create . |
        "$engine" import --change "ENV $path" --change 'CMD ["python3"]' - "$name" >/dev/null
fi
