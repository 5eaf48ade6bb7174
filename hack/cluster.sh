#!/usr/bin/env bash
# cluster.sh NAME: a Kubernetes on this machine with the operator installed by its chart and Ray's image on every node.
# What is there already is used. Prints each step with the time since the start.
# With HELIOSTAT_GATEWAY_API=1 the Gateway API is installed too, before the operator, which looks for it when it starts.
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:?usage: hack/cluster.sh NAME}
shift
start=$SECONDS
say() { printf '[%4ds] %s\n' $((SECONDS - start)) "$*"; }
localkube=${HELIOSTAT_LOCALKUBE:-$PWD/bin/localkube}
work=bin/images
mkdir -p "$work"

if [ "$(id -u)" != 0 ]; then
  echo "Nodes need root: network namespaces, cgroups and containers are made. Run this with sudo -E." >&2
  exit 1
fi

say "Debian packages that nodes need"
"$localkube" prepare
say "Kubernetes programs (the first build takes about 15 minutes)"
"$localkube" build
say "Ray image (the first build takes about 5 minutes)"
"$localkube" image ray -o "$work/ray.tar"
say "Operator image"
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION:-0.1.0-dev}" -o bin/heliostat ./cmd/heliostat
"$localkube" image binary --name docker.io/heliostat/operator:dev --binary bin/heliostat -o "$work/operator.tar"
say "Kubernetes: $name"
"$localkube" up --name "$name" "$@"
say "Images onto the nodes"
"$localkube" load --name "$name" "$work/operator.tar" "$work/ray.tar"

KUBECONFIG=$("$localkube" kubeconfig --name "$name" --path)
export KUBECONFIG
gateway=none
if [ "${HELIOSTAT_GATEWAY_API:-}" = 1 ]; then
  say "Gateway API"
  go mod download sigs.k8s.io/gateway-api
  gateway=$(go list -m -f '{{.Version}}' sigs.k8s.io/gateway-api)
  "$localkube" kubectl --name "$name" -- apply --server-side -f "$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard" >/dev/null
  "$localkube" kubectl --name "$name" -- wait --for condition=Established --timeout=1m \
    crd/gateways.gateway.networking.k8s.io crd/httproutes.gateway.networking.k8s.io >/dev/null
fi
say "Operator, by its chart"
# The tag never changes, so a new image is taken by an annotation that says which one it is.
go tool -modfile=hack/helm/go.mod helm upgrade --install heliostat charts/heliostat \
  --namespace heliostat-system --create-namespace --wait --timeout 5m \
  --set image.tag=dev --set image.pullPolicy=IfNotPresent \
  --set-json 'featureGates=[{"name": "RayCronJob", "enabled": true}, {"name": "GCSFaultToleranceEmbeddedStorage", "enabled": true}]' \
  --set-string "annotations.heliostat\.io/binary=$(sha256sum bin/heliostat | cut -c1-16)" \
  --set-string "annotations.heliostat\.io/gateway-api=$gateway"
"$localkube" kubectl --name "$name" -- apply --server-side --force-conflicts -f charts/heliostat/crds >/dev/null
say "ready"
