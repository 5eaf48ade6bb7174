#!/usr/bin/env bash
# Regenerates everything that is generated: deep copies, CRDs, the field reference.
set -euo pipefail
cd "$(dirname "$0")/.."

raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
tool() { go tool -modfile=hack/tools/go.mod "$@"; }

tool controller-gen object paths=./api/...
tool controller-gen crd:generateEmbeddedObjectMeta=true,allowDangerousTypes=true paths=./api/... "output:crd:dir=$raw"
# Descriptions of our own fields stay, those of embedded Kubernetes types go: with them the CRDs would not fit into a
# Helm release.
go run ./hack/apidocs crds "$raw" charts/heliostat/crds
go run ./hack/apidocs pages charts/heliostat/crds docs/reference
