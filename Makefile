# Heliostat. `make help` lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Everything that is built and may be thrown away. The cache of localkube (Kubernetes, images) is $HELIOSTAT_CACHE.
BIN := bin
VERSION ?= 0.1.0-dev
LOCALKUBE := $(CURDIR)/$(BIN)/localkube
export HELIOSTAT_LOCALKUBE := $(LOCALKUBE)

TOOLS := go tool -modfile=hack/tools/go.mod
LINT := go tool -modfile=$(CURDIR)/hack/lint/go.mod golangci-lint
GOTESTSUM := $(TOOLS) gotestsum --format pkgname-and-test-fails --
MODULES := hack/localkube hack/s3server test/chart
GO_LDFLAGS := -s -w -X main.version=$(VERSION)

.PHONY: help
help: ## Show this list.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

##@ Build

.PHONY: build
build: ## Build the operator into bin/.
	CGO_ENABLED=0 go build -trimpath -ldflags '$(GO_LDFLAGS)' -o $(BIN)/heliostat ./cmd/heliostat

.PHONY: localkube
localkube: ## Build the tool that runs a Kubernetes on this machine.
	cd hack/localkube && CGO_ENABLED=0 go build -trimpath -o $(LOCALKUBE) ./cmd/localkube

.PHONY: generate
generate: ## Regenerate CRDs, deep copies and the field reference.
	hack/generate.sh

##@ Check

.PHONY: verify
verify: ## Lint, and fail if generated files are not up to date.
	hack/verify.sh

.PHONY: lint
lint: ## Lint all modules.
	$(LINT) run ./...
	cd test/chart && $(LINT) run --config $(CURDIR)/.golangci.yml ./...
	@# cmd/kube and cmd/coredns only import; linting them would compile all of Kubernetes once more.
	cd hack/localkube && $(LINT) run --config $(CURDIR)/.golangci.yml . ./cmd/localkube ./cmd/pause ./image/... ./internal/... ./rayimage/... ./s3image/...

.PHONY: test
test: localkube ## Unit, simulation and integration tests (real kube-apiserver; no root needed).
	$(LOCALKUBE) build --only kube
	$(GOTESTSUM) -race -timeout 20m ./...
	for module in $(MODULES); do (cd $$module && go tool -modfile=$(CURDIR)/hack/tools/go.mod gotestsum --format pkgname -- -timeout 10m ./...); done

.PHONY: e2e-smoke
e2e-smoke: localkube ## Real nodes, real Ray, one case a kind (needs root).
	hack/e2e.sh smoke

.PHONY: e2e
e2e: localkube ## Everything on real nodes and real Ray (needs root).
	hack/e2e.sh all

##@ Demo

.PHONY: demo
demo: ## From nothing to a finished Ray job on a real Kubernetes on this machine (needs root).
	hack/demo/up.sh

.PHONY: demo-clean
demo-clean: ## Remove what `make demo` started; keeps built programs and images.
	hack/demo/down.sh
