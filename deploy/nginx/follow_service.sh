#!/bin/sh
# Runs nginx over all addresses that a name has, and follows them as they come and go.
#
#   follow_service.sh NAME PORT FOLDER
#
# NAME: of a headless Service, or any that stands for all replicas. PORT: theirs. FOLDER: for what
# nginx writes. NGINX_CONF: the configuration (beside this file). FOLLOW_S: seconds between looks (2).
set -eu
name=$1
port=$2
folder=$3

# Succeeds where the addresses are others than before. A name that cannot be looked up changes
# nothing: it says more about the name server than about the replicas.
addresses_changed() {
    getent ahostsv4 "$name" | cut -d ' ' -f 1 | sort -u |
        sed "s/.*/server &:$port;/" >"$folder/servers.new"
    if ! [ -s "$folder/servers.new" ] || cmp -s "$folder/servers.new" "$folder/servers.conf"; then
        return 1
    fi
    mv "$folder/servers.new" "$folder/servers.conf"
}

pause() { # in the background, so that a signal is heard at once
    sleep "${FOLLOW_S:-2}" &
    wait $! || true
}

mkdir -p "$folder"
cp "${NGINX_CONF:-$(dirname "$0")/nginx.conf}" "$folder/nginx.conf"
trap 'exit 0' TERM INT
until addresses_changed; do
    pause
done
nginx -p "$folder/" -c nginx.conf -g 'daemon off;' &
nginx=$!
trap 'kill -QUIT "$nginx" 2>/dev/null || true' TERM INT
while kill -0 "$nginx" 2>/dev/null; do
    pause
    if addresses_changed; then
        kill -HUP "$nginx" 2>/dev/null || true
    fi
done
wait "$nginx"
