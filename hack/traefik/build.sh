#!/usr/bin/env bash
# build.sh: builds Traefik, the Gateway of the end-to-end tests, into the cache unless it is there, and prints its path.
# The first build takes about 17 minutes of CPU time.
set -euo pipefail
cd "$(dirname "$0")"

cache=${HELIOSTAT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/heliostat}
key=$(cat go.mod go.sum build.sh <(go version) | sha256sum | cut -c1-16)
program=$cache/bin/traefik-$key
if [ ! -x "$program" ]; then
  mkdir -p "$cache/bin"
  part=$(mktemp "$cache/bin/.traefik-XXXXXX")
  trap 'rm -f "$part"' EXIT
  CGO_ENABLED=0 GOWORK=off go build -mod=readonly -trimpath -buildvcs=false -ldflags '-s -w' -o "$part" \
    github.com/traefik/traefik/v3/cmd/traefik >&2
  chmod 755 "$part"
  mv "$part" "$program"
fi
echo "$program"
