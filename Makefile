# Heliostat. `make help` lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Everything that is built and may be thrown away. The cache of localkube (Kubernetes, images) is $HELIOSTAT_CACHE.
BIN := bin
VERSION ?= 0.1.0-dev
LOCALKUBE := $(CURDIR)/$(BIN)/localkube
export HELIOSTAT_LOCALKUBE := $(LOCALKUBE)

TOOLS := go tool -modfile=$(CURDIR)/hack/tools/go.mod
LINT := go tool -modfile=$(CURDIR)/hack/lint/go.mod golangci-lint
GOTESTSUM := $(TOOLS) gotestsum --format pkgname-and-test-fails --
# Not cmd/kube and cmd/coredns: they only import, and checking them would compile all of Kubernetes once more.
LOCALKUBE_PACKAGES := . ./cmd/localkube ./cmd/pause ./image/... ./internal/... ./rayimage/... ./s3image/...
GO_LDFLAGS := -s -w -X main.version=$(VERSION)

.PHONY: help
help: ## Show this list.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

##@ Build

.PHONY: build
build: ## Build the operator into bin/.
	CGO_ENABLED=0 go build -trimpath -ldflags '$(GO_LDFLAGS)' -o $(BIN)/heliostat ./cmd/heliostat

.PHONY: kubectl-ray
kubectl-ray: ## Build the kubectl plugin into bin/, with the program by which kubectl completes it.
	CGO_ENABLED=0 go build -trimpath -ldflags '$(GO_LDFLAGS)' -o $(BIN)/kubectl-ray ./cmd/kubectl-ray
	install -m 755 cmd/kubectl-ray/kubectl_complete-ray $(BIN)/kubectl_complete-ray

.PHONY: localkube
localkube: ## Build the tool that runs a Kubernetes on this machine.
	cd hack/localkube && CGO_ENABLED=0 go build -trimpath -o $(LOCALKUBE) ./cmd/localkube

.PHONY: clean
clean: ## Remove what was built into bin/.
	rm -rf $(BIN)

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
	cd hack/s3server && CGO_ENABLED=0 $(LINT) run --config $(CURDIR)/.golangci.yml ./...
	cd hack/localkube && CGO_ENABLED=0 $(LINT) run --config $(CURDIR)/.golangci.yml $(LOCALKUBE_PACKAGES)

.PHONY: test
test: localkube ## Unit, simulation and integration tests (real kube-apiserver; no root needed).
	$(LOCALKUBE) build
	$(GOTESTSUM) -timeout 40m ./...
	cd test/chart && $(GOTESTSUM) -timeout 10m ./...
	cd hack/localkube && CGO_ENABLED=0 $(GOTESTSUM) -trimpath -timeout 10m $(LOCALKUBE_PACKAGES)
	cd hack/s3server && CGO_ENABLED=0 $(GOTESTSUM) -trimpath -timeout 10m ./...

.PHONY: race
race: ## The unit tests and the simulation with the race detector (needs a C compiler).
	go test -race -timeout 20m ./internal/... ./api/... ./test/sim ./test/fakedashboard

.PHONY: nightly
SEEDS ?= 200000
nightly: ## The simulation over many more seeds (SEEDS=n), from a first one that differs each day (FROM=n).
	go test ./test/sim -run 'TestSeeds' -count=1 -timeout 12h -seeds=$(SEEDS) -from=$(or $(FROM),$(shell date +%y%m%d)00000)

.PHONY: bench
bench: localkube ## Budgets at full size: rest of 100 clusters for ten minutes, 1,000 workers beside 300 small clusters, take-over of 1,000 clusters.
	$(LOCALKUBE) build
	go test ./test/bench -count=1 -v -timeout 60m -rest=10m -clusters=100 -workers=1000 -small=300 -taken=1000

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
