#!/usr/bin/env bash
# Build the image, start it as an orchestrator would (not root, read-only root filesystem), score
# with it, stop it, and print how large it is and how soon it was ready.
#
#   deploy/docker/build_and_smoke.sh [-- OPTIONS FOR THE BUILD]
#
# Environment:
#   ENGINE      docker, podman or buildah; default: the first of them that works here.
#               buildah needs neither a daemon nor a container runtime, but root.
#   IMAGE       name of the image; default adrel
#   TARGET      of the Dockerfile: cpu (default), or gpu, which is built but not started: it would
#               need the device
#   BASE_IMAGE  another base with Python 3.11 and venv; default: the Dockerfile's, or one made of
#               Debian's packages (base_image.sh) where that cannot be pulled
#   HOST_PIP    1: install as pip does on this machine (host_pip.sh; podman and buildah)
#   PIP_CONF    a pip.conf for the build, for a network with a mirror; stays out of the image
#   PORT        loopback port of the container; default 8099
#
# Options after `--` go to the engine's build, e.g. --build-arg PIP_INDEX_URL=... or --volume.
set -euo pipefail
cd "$(dirname "$0")/../.."

image=${IMAGE:-adrel}
target=${TARGET:-cpu}
port=${PORT:-8099}
ready_limit_s=60
stop_limit_s=30 # over the service's drain_timeout_s
url=http://127.0.0.1:$port
work=$(mktemp -d)
container=

fail() { echo "build_and_smoke: $*" >&2 && exit 1; }
step() { echo "== $*" >&2; }
now_ms() { date +%s%3N; }

default_base=$(sed --quiet 's/^ARG BASE_IMAGE=//p' Dockerfile)
own_base=localhost/adrel-base

# Sets `engine` and `base`: the first engine that can start a container here. That podman is
# installed or that docker answers does not say so.
choose_engine() {
    for engine in ${ENGINE:-docker podman buildah}; do
        command -v "$engine" >/dev/null && "$engine" images >/dev/null 2>&1 || continue
        choose_base
        [ "$engine" != buildah ] || return 0 # what it starts is started without a runtime, see below
        if "$engine" run --rm --entrypoint true "$base" 2>"$work/why"; then return; fi
        step "$engine cannot start a container here: $(tail -1 "$work/why")"
    done
    fail "found no working docker, podman or buildah"
}

choose_base() {
    base=${BASE_IMAGE:-$default_base}
    if [ -n "${BASE_IMAGE:-}" ] || "$engine" pull --quiet "$base" >/dev/null 2>&1; then return; fi
    base=$own_base
    # Not `images`: docker's says "none" with success.
    "$engine" inspect --type image "$base" >/dev/null 2>&1 || {
        step "cannot pull $default_base: a base of Debian's packages"
        deploy/docker/base_image.sh "$engine" "$base"
    }
}

build() {
    local options=(--tag "$image" --target "$target" --build-arg "BASE_IMAGE=$base"
        --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)")
    [ -z "${PIP_CONF:-}" ] || options+=(--secret "id=pip_conf,src=$PIP_CONF")
    if [ "${HOST_PIP:-}" = 1 ] && [ "$engine" != docker ]; then
        mapfile -t -O "${#options[@]}" options < <(deploy/docker/host_pip.sh "$work/pip.conf")
    fi
    # An OCI image has no place for a HEALTHCHECK; the docker format has.
    [ "$engine" = docker ] || options+=(--format docker)
    # chroot is the isolation that works where there is no container runtime.
    [ "$engine" != buildah ] || options+=(--isolation chroot --layers)
    "$engine" build "${options[@]}" "$@" . >&2
}

# start, alive, inside COMMAND... and stop: the same four for each engine. `stop` fails unless the
# service ended by itself with 0 after SIGTERM.
if_docker() {
    start() {
        container=adrel-smoke-$$ # known before it runs: one that fails to start is removed too
        "$engine" run --detach --name "$container" --read-only --cap-drop ALL \
            --security-opt no-new-privileges --publish "127.0.0.1:$port:8000" "$image" >/dev/null
    }
    alive() { [ "$("$engine" inspect --format '{{.State.Running}}' "$container")" = true ]; }
    inside() { "$engine" exec "$container" "$@"; }
    logs() { "$engine" logs "$container"; }
    stop() {
        "$engine" stop --time "$stop_limit_s" "$container" >/dev/null
        [ "$("$engine" inspect --format '{{.State.ExitCode}}' "$container")" = 0 ]
    }
    clean_up() { [ -z "$container" ] || "$engine" rm --force "$container" >/dev/null; }
    size() { "$engine" image inspect --format '{{.Size}}' "$image" | awk '{print int($1 / 1e6), "MB"}'; }
}

# buildah has no `run` of that kind: the root filesystem is mounted read-only and entered with
# chroot, with the image's own command, user and environment. The network is the host's.
if_buildah() {
    of_image() { buildah inspect --type image --format "{{.Docker.Config.$1}}" "$image"; }
    lines_of_image() { of_image "$1" | sed 's/^\[//; s/\]$//' | tr ' ' '\n'; }
    start() {
        container=$(buildah from "$image")
        mkdir "$work/root"
        mount --bind "$(buildah mount "$container")" "$work/root"
        mount -o remount,bind,ro "$work/root"
        local host_folder
        # ONNX Runtime and the service read the processor and the CPU limit from these.
        for host_folder in proc sys dev; do
            mount --rbind "/$host_folder" "$work/root/$host_folder"
            mount --make-rslave "$work/root/$host_folder"
        done
        mapfile -t container_env < <(lines_of_image Env)
        mapfile -t entrypoint < <(lines_of_image Entrypoint)
        # shellcheck disable=SC2016  # for the inner shell
        enter=(env --ignore-environment "${container_env[@]}" ADREL_HOST=127.0.0.1
            "ADREL_PORT=$port" chroot --userspec="$(of_image User)" "$work/root"
            /bin/sh -c 'cd "$0" && exec "$@"' "$(of_image WorkingDir)")
        "${enter[@]}" "${entrypoint[@]}" >"$work/log" 2>&1 &
        pid=$! # the service's own: all of the above end in exec
    }
    alive() { kill -0 "$pid" 2>/dev/null; }
    inside() { "${enter[@]}" "$@"; }
    logs() { cat "$work/log"; }
    stop() {
        local watchdog code=0
        kill -TERM "$pid"
        (exec sleep "$stop_limit_s") & # `wait` has no time limit of its own
        watchdog=$!
        wait -n "$pid" "$watchdog" || code=$?
        if alive; then return 1; fi
        pid=
        kill "$watchdog"
        [ "$code" = 0 ]
    }
    clean_up() {
        [ -z "${pid:-}" ] || kill -KILL "$pid" 2>/dev/null || true
        ! mountpoint --quiet "$work/root" || umount --recursive "$work/root"
        [ -z "$container" ] || buildah rm "$container" >/dev/null
    }
    size() { buildah images --format '{{.Size}}' "$image" | head -1; }
}

wait_until_ready() {
    local deadline_ms=$(($(now_ms) + ready_limit_s * 1000))
    until curl --silent --fail --output /dev/null "$url/readyz"; do
        alive || fail "the container stopped before it was ready: $(logs 2>&1 | tail -5)"
        [ "$(now_ms)" -lt "$deadline_ms" ] || fail "not ready within $ready_limit_s s"
        sleep 0.05
    done
}

score_once() {
    curl --silent --show-error --fail-with-body --header 'Content-Type: application/json' \
        --data '{"query": "best running shoes for marathons", "ads": [
            {"id": "A", "title": "Nike Marathon Elite Shoes - 20% Off"},
            {"id": "B", "text": "Garden Hoses and Sprinklers"}]}' "$url/v1/score"
}

check_inside() {
    [ "$(inside id -u)" != 0 ] || fail "the service runs as root"
    if inside touch /srv/adrel/probe 2>/dev/null; then fail "the root filesystem can be written"; fi
    inside /srv/venv/bin/python -c '
import importlib.util, sys
found = [name for name in ("torch", "transformers", "optimum") if importlib.util.find_spec(name)]
sys.exit(f"the image carries {found}" if found else 0)'
    inside /srv/venv/bin/python -I -S /srv/adrel/healthcheck.py
}

[ "${1:-}" != -- ] || shift
# Otherwise the answers of something else would be taken for the container's.
if curl --silent --output /dev/null "$url"; then fail "something listens on $url; set PORT"; fi
clean_up() { :; } # until there is something
# --one-file-system: whatever is still mounted in there is not ours to remove.
trap 'clean_up; rm -rf --one-file-system "$work"' EXIT
choose_engine
if [ "$engine" = buildah ]; then if_buildah; else if_docker; fi

step "build the target $target with $engine"
build "$@"
if [ "$target" != cpu ]; then
    echo "image $(size), not started"
    exit
fi
step "start"
started_ms=$(now_ms)
start
wait_until_ready
ready_ms=$(($(now_ms) - started_ms))
step "score"
score_once
echo
step "check"
check_inside
step "stop"
stop || fail "the service did not end with 0 after SIGTERM"
echo "image $(size), ready in $ready_ms ms"
