#!/usr/bin/env bash
# e2e.sh smoke|all [FLAG...]: runs the tests of test/e2e on real nodes and real Ray. Flags go to the tests.
# The cluster is removed afterwards unless HELIOSTAT_KEEP=1.
set -euo pipefail
cd "$(dirname "$0")/.."

localkube=${HELIOSTAT_LOCALKUBE:-$PWD/bin/localkube}
cluster=e2e
case ${1:-} in
  smoke) only=(-run '^TestSmoke') ;;
  all) only=() ;;
  *)
    echo "usage: hack/e2e.sh smoke|all [FLAG...]" >&2
    exit 2
    ;;
esac
what=$1
shift
cleanup() {
  [ "${HELIOSTAT_KEEP:-}" = 1 ] || "$localkube" down --name "$cluster"
}
trap cleanup EXIT

if [ "$what" = all ]; then
  export HELIOSTAT_GATEWAY_API=1
  # The terminal on which kubectl-ray is watched.
  if ! command -v tmux >/dev/null; then
    apt-get -q update
    DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install tmux
  fi
fi
hack/cluster.sh "$cluster" --fast-node-loss
if [ "$what" = all ]; then
  echo "The S3 server, the load generator and Traefik (the first build of Traefik takes about 17 minutes of CPU time)"
  "$localkube" image s3 -o bin/images/s3.tar
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/loadgen ./test/loadgen/cmd/loadgen
  "$localkube" image binary --name docker.io/heliostat/loadgen:dev --binary bin/loadgen --entrypoint /loadgen -o bin/images/loadgen.tar
  "$localkube" image binary --name docker.io/heliostat/traefik:dev --binary "$(hack/traefik/build.sh)" --entrypoint /traefik \
    -o bin/images/traefik.tar
  "$localkube" load --name "$cluster" bin/images/s3.tar bin/images/loadgen.tar bin/images/traefik.tar
  "$localkube" kubectl --name "$cluster" -- apply --server-side -f hack/traefik/traefik.yaml
  "$localkube" kubectl --name "$cluster" -- --namespace traefik rollout status deployment/traefik --timeout=2m
fi
KUBECONFIG=$("$localkube" kubeconfig --name "$cluster" --path)
export KUBECONFIG HELIOSTAT_LOCALKUBE="$localkube" HELIOSTAT_CLUSTER="$cluster"
go tool -modfile=hack/tools/go.mod gotestsum --format testname -- -tags e2e -count=1 -timeout 180m "${only[@]}" "$@" ./test/e2e
