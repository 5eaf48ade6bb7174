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

hack/cluster.sh "$cluster" --fast-node-loss
if [ "$what" = all ]; then
  "$localkube" image s3 -o bin/images/s3.tar
  "$localkube" load --name "$cluster" bin/images/s3.tar
fi
KUBECONFIG=$("$localkube" kubeconfig --name "$cluster" --path)
export KUBECONFIG HELIOSTAT_LOCALKUBE="$localkube"
go tool -modfile=hack/tools/go.mod gotestsum --format testname -- -tags e2e -count=1 -timeout 60m "${only[@]}" "$@" ./test/e2e
