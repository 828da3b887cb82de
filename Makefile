# Everything a contributor runs, from one place. `make` alone lists the everyday targets.
#
# What is built lands in bin/. Nothing is installed outside the checkout and nothing needs root, except for `make chromium`. All that is
# downloaded are Go modules, pinned in go.mod and in the go.mod files of hack/, programs of the control plane, pinned in
# hack/controlplane/checksums.txt, Debian packages for one container image, pinned in hack/image, and from npm what looks at documents and
# pages and the clients of agents, pinned in hack/openapi, hack/lighthouse, test/agents/foreign, test/counting and hack/make/browser.mk.

MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

BIN := $(CURDIR)/bin

# One set of flags for all builds and tests, so that each finds the packages that another one has compiled. Only the race detector needs cgo.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath $(GOFLAGS)

# The version that `herald --version` prints, and the tag of images: the tag in git, or what can be said without one. It is a semantic
# version behind its v, for charts; a commit may consist of digits alone, and gets a letter.
VERSION ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo "v0.0.0-$$(git describe --always --dirty 2>/dev/null | sed 's/^/g/;q' | grep . || echo unknown)")

# etcd and kube-apiserver for the suites that need a real API server, and kube-controller-manager, which setup-envtest does not bring:
# where KUBEBUILDER_ASSETS lacks it, that of bin/ is used.
ASSETS = $(or $(KUBEBUILDER_ASSETS),$(BIN))
servers = $(if $(KUBEBUILDER_ASSETS),,$(BIN)/etcd $(BIN)/kube-apiserver) $(if $(and $(KUBEBUILDER_ASSETS),$(wildcard $(KUBEBUILDER_ASSETS)/kube-controller-manager)),,$(BIN)/kube-controller-manager)

# RACE=1 runs tests under the race detector, LONG=1 the crash matrix in full and the exploration further, FUZZTIME is spent on each fuzz target.
RACE ?=
LONG ?=
FUZZTIME ?= 20s

##@ General

# The targets of everyday work.
everyday := run check test test-unit lint-fix generate manifests bench

.PHONY: help
help: ## List the targets of everyday work
	@awk -v everyday=' $(everyday) ' 'BEGIN { FS = ":.*## " }
	  /^[a-zA-Z0-9_-]+:.*## / && index(everyday, " " $$1 " ") { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	echo "make help-all lists the others."

.PHONY: help-all
help-all: ## List all targets
	@awk 'BEGIN { FS = ":.*## " }
	  /^##@ / { printf "\n%s\n", substr($$0, 5) }
	  /^[a-zA-Z0-9_-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Every day

.PHONY: generate
generate: ## Write generated Go code: deep copies, and whatever else go:generate names
	@echo "generate: deep copies of api/"
	go tool controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	echo "generate: go generate ./..."
	# Generators called as `go run ./gen` read from the outside world; they are run on purpose, in their own folder.
	go generate -skip 'go run \./gen$$' ./...
	echo "generate: docs/licences.md"
	$(image_program) licences --out $(CURDIR)

.PHONY: manifests
manifests: ## Write CRDs and roles from the markers in the code, and what the chart takes from them
	@echo "manifests: config/crd/bases, config/rbac"
	go tool controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	go tool controller-gen rbac:roleName=herald-manager paths="{./controllers/...,./cmd/herald/internal/preflight}" output:rbac:artifacts:config=config/rbac/manager
	go tool controller-gen rbac:roleName=herald-apiserver paths="{./apiserver/kube,./cmd/herald/internal/preflight}" output:rbac:artifacts:config=config/rbac/apiserver
	go tool controller-gen rbac:roleName=herald-apiserver-web paths=./apiserver/access output:rbac:artifacts:config=config/rbac/web
	echo "manifests: charts/herald, from config/ and values.yaml"
	$(chart) generate $(CURDIR)

# Go and the linters keep the results of what has not changed.
.PHONY: check
check: ## What a change needs before it is committed: generated files, linters, unit tests
	@$(MAKE) verify lint test-unit

.PHONY: lint-fix
lint-fix: $(BIN)/golangci-lint ## Let the linters mend what they can
	@for module in . $(code_modules); do
	  (cd "$$module" && $(BIN)/golangci-lint run --fix --config $(CURDIR)/.golangci.yml ./...)
	done

# The program replaces the shell and is a child of make itself: a signal sent to make reaches it, which `go run` would not pass on.
.PHONY: run
run: controlplane ## Run all of Herald on this machine, with simulated platforms, until Ctrl-C
	@exec $(BIN)/local run

.PHONY: test
test: ## Everything that must hold before a change lands; says at the end what it could not run, and why
	@MAKE='$(MAKE)' hack/test.sh

# Modules of one goroutine: for the race detector all of their libraries would be built a second time.
without_race := hack/chart hack/conform hack/flux hack/image

# Packages whose tests are long, and models of one goroutine: the race detector has nothing to find there, and takes many minutes.
# What reads the lists of the archive at once, apiserver/archived and apiserver/postindex, is tested with it.
one_goroutine := posting/explore test/schema/decode internal/archive/lists

.PHONY: test-unit
test-unit: ## Unit tests: all packages that need nothing but Go (RACE=1 for the race detector)
	@tested=$$($(tested))
	suites=$$($(suites))
	packages=$$(comm -23 <(echo "$$tested") <(echo "$$suites") | grep -vF $(addprefix -e /,$(one_goroutine)))
	if [ -n "$$packages" ]; then $(go_test) $$packages; else $(call not_run,unit tests; there are none); fi
	go test -timeout 20m $(addprefix ./,$(one_goroutine))
	# What many goroutines enter into the lists of a team, beside the model of them.
	$(if $(RACE),$(go_test) -run Gather ./internal/archive/lists)
	for module in $(filter-out $(without_race),$(code_modules)); do
	  (cd "$$module" && $(go_test) ./...)
	done
	for module in $(without_race); do
	  (cd "$$module" && GOWORK=off go test -timeout 20m ./...)
	done

# The program replaces the shell, so that a signal sent to make reaches it; it ends everything that it has started.
.PHONY: bench
bench: controlplane ## Measure Herald against its floor, the Kubernetes API (BENCH=B1,B3 runs a part; docs/performance.md)
	@go build -buildvcs=false -o $(BIN)/perf ./test/perf
	exec $(BIN)/perf

include hack/make/lint.mk
include hack/make/build.mk
include hack/make/test.mk
include hack/make/browser.mk
include hack/make/chart.mk
include hack/make/images.mk
include hack/make/tools.mk
