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
#   TARGET      of the Dockerfile: cpu (default); gpu, which has to refuse to start where the
#               container has no GPU; loadtest, which is built but not started
#   BASE_IMAGE  another base with Python 3.11 and venv; default: the Dockerfile's, or one made of
#               Debian's packages (base_image.sh) where that cannot be pulled
#   HOST_PIP    1: install as pip does on this machine (host_pip.sh; podman and buildah)
#   PIP_CONF    a pip.conf for the build, for a network with a mirror; stays out of the image
#   PORT        loopback port of the container; default 8099
#   SOURCE_DATE_EPOCH  time of the image and, with podman and buildah, of all files in its layers;
#               default: of the last commit. README.md tells how two builds come out the same
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

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
default_base=$(sed --quiet 's/^ARG BASE_IMAGE=//p' Dockerfile)
# By its recipe, so that one of another recipe is not taken for it.
own_base=localhost/adrel-base:$(sha256sum deploy/docker/base_image.sh | head -c 12)

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
        SOURCE_DATE_EPOCH=0 deploy/docker/base_image.sh "$engine" "$base"
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
    [ "$engine" = docker ] || options+=(--format docker --timestamp "$SOURCE_DATE_EPOCH")
    # chroot is the isolation that works where there is no container runtime.
    [ "$engine" != buildah ] || options+=(--isolation chroot --layers)
    "$engine" build "${options[@]}" "$@" . >&2
}

# The same for each engine: start, alive, inside COMMAND..., logs, stop, which fails unless the
# service ended by itself with 0 after SIGTERM, ended_with CODE, clean_up and size IMAGE.
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
        ended_with 0
    }
    ended_with() { [ "$("$engine" inspect --format '{{.State.ExitCode}}' "$container")" = "$1" ]; }
    clean_up() { [ -z "$container" ] || "$engine" rm --force "$container" >/dev/null; }
    size() { "$engine" image inspect --format '{{.Size}}' "$1" | awk '{print int($1 / 1e6), "MB"}'; }
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
        kill -TERM "$pid"
        within "$stop_limit_s" gone && ended_with 0
    }
    ended_with() {
        local code=0
        wait "$pid" || code=$?
        pid=
        [ "$code" = "$1" ]
    }
    clean_up() {
        [ -z "${pid:-}" ] || kill -KILL "$pid" 2>/dev/null || true
        ! mountpoint --quiet "$work/root" || umount --recursive "$work/root"
        [ -z "$container" ] || buildah rm "$container" >/dev/null
    }
    size() { buildah images --format '{{.Size}}' "$1" | head -1; }
}

# within SECONDS CONDITION: wait until it holds.
within() {
    local deadline_ms=$(($(now_ms) + $1 * 1000))
    until "$2"; do
        [ "$(now_ms)" -lt "$deadline_ms" ] || return 1
        sleep 0.05
    done
}

gone() { ! alive; }
ready() { curl --silent --fail --output /dev/null "$url/readyz"; }
ready_or_gone() { ready || gone; }

# Sets `ready_ms`.
wait_until_ready() {
    local started_ms
    started_ms=$(now_ms)
    start
    within "$ready_limit_s" ready_or_gone || fail "not ready within $ready_limit_s s"
    ready_ms=$(($(now_ms) - started_ms))
    ready || fail "the container stopped before it was ready: $(logs 2>&1 | tail -5)"
}

# A service for the GPU never falls back to the CPU in silence.
refuses_without_a_gpu() {
    start
    within "$ready_limit_s" ready_or_gone || fail "neither ready nor ended within $ready_limit_s s"
    if alive; then fail "serves, though no GPU was handed in"; fi
    ended_with 1 || fail "did not end with 1: $(logs 2>&1 | tail -5)"
    logs 2>&1 | grep CUDAExecutionProvider || fail "does not say what is missing: $(logs 2>&1)"
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
sizes="image $(size "$image"), of which the base $(size "$base")"
case $target in
cpu) ;;
gpu)
    step "start without a GPU"
    refuses_without_a_gpu
    echo "$sizes; refuses to start without a GPU"
    exit
    ;;
*)
    echo "$sizes; not started"
    exit
    ;;
esac
step "start"
wait_until_ready
step "score"
score_once
echo
step "check"
check_inside
step "stop"
stop || fail "the service did not end with 0 after SIGTERM"
echo "$sizes; ready in $ready_ms ms"
