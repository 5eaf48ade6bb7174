#!/usr/bin/env bash
# Runs the tests of test/e2e on real nodes and real Ray. Arguments go to the tests, for example: -run TestSmoke
# The cluster is removed afterwards unless HELIOSTAT_KEEP=1.
set -euo pipefail
cd "$(dirname "$0")/.."

localkube=${HELIOSTAT_LOCALKUBE:-$PWD/bin/localkube}
cluster=e2e
cleanup() {
  [ "${HELIOSTAT_KEEP:-}" = 1 ] || "$localkube" down --name "$cluster"
}
trap cleanup EXIT

hack/cluster.sh "$cluster" --fast-node-loss
KUBECONFIG=$("$localkube" kubeconfig --name "$cluster" --path)
export KUBECONFIG HELIOSTAT_LOCALKUBE="$localkube"
go tool -modfile=hack/tools/go.mod gotestsum --format testname -- -tags e2e -count=1 -timeout 60m "$@" ./test/e2e
