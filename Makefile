# Everything that contributors run. `make` alone lists the everyday targets.
#
# Build output goes to bin/. Nothing is installed outside the checkout and nothing needs root, except for `make chromium`. The only
# downloads are Go modules, pinned in go.mod and in the go.mod files of hack/; control plane programs, pinned in
# hack/controlplane/checksums.txt; Debian packages for one container image, pinned in hack/image; and npm packages that check documents and
# pages, act as clients for agents or are servers to test against, pinned in hack/openapi, hack/lighthouse, test/agents/foreign,
# test/bluesky, test/counting, test/mastodon, test/signatures and hack/make/browser.mk.

MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

BIN := $(CURDIR)/bin

# All builds and tests share one set of flags, so that they reuse each other's compiled packages. Only the race detector needs cgo.
#
# gomponents returns a closure for each element of a page. Inlining would copy that closure's code to each of the thousand places that
# create one: 1.4 MiB of the program, which every process of it keeps in memory.
shared_flags := -trimpath -gcflags=maragu.dev/gomponents=-l
export CGO_ENABLED := 0
export GOFLAGS := $(shared_flags) $(filter-out $(shared_flags),$(GOFLAGS))

# The version that `herald --version` prints, and the tag of the images: the Git tag, or the best that is known without one. For charts,
# what follows the v is a semantic version; since a commit may consist of digits alone, it gets a letter.
VERSION ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo "v0.0.0-$$(git describe --always --dirty 2>/dev/null | sed 's/^/g/;q' | grep . || echo unknown)")

# etcd and kube-apiserver for the suites that need a real API server, and kube-controller-manager, which setup-envtest does not provide: if
# it is not in KUBEBUILDER_ASSETS, the one in bin/ is used.
ASSETS = $(or $(KUBEBUILDER_ASSETS),$(BIN))
servers = $(if $(KUBEBUILDER_ASSETS),,$(BIN)/etcd $(BIN)/kube-apiserver) $(if $(and $(KUBEBUILDER_ASSETS),$(wildcard $(KUBEBUILDER_ASSETS)/kube-controller-manager)),,$(BIN)/kube-controller-manager)

# RACE=1 runs tests under the race detector, LONG=1 runs the full crash matrix and explores further, and FUZZTIME is how long each fuzz
# target runs.
RACE ?=
LONG ?=
FUZZTIME ?= 20s

##@ General

# The everyday targets.
everyday := run check test test-unit lint-fix generate manifests bench

.PHONY: help
help: ## List the everyday targets
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
generate: ## Write generated Go code: deep copies, and everything else from go:generate
	@echo "generate: deep copies of api/"
	go tool controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	echo "generate: go generate ./..."
	# Generators called as `go run ./gen` read external sources. They are run deliberately, in their own folder.
	go generate -skip 'go run \./gen$$' ./...
	echo "generate: docs/licences.md"
	$(image_program) licences --out $(CURDIR)

.PHONY: manifests
manifests: ## Write CRDs and roles from the markers in the code, and the chart files generated from them
	@echo "manifests: config/crd/bases, config/rbac"
	go tool controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	go tool controller-gen rbac:roleName=herald-manager paths="{./controllers/...,./cmd/herald/internal/preflight}" output:rbac:artifacts:config=config/rbac/manager
	go tool controller-gen rbac:roleName=herald-apiserver paths="{./apiserver/kube,./cmd/herald/internal/preflight}" output:rbac:artifacts:config=config/rbac/apiserver
	go tool controller-gen rbac:roleName=herald-apiserver-web paths=./apiserver/access output:rbac:artifacts:config=config/rbac/web
	echo "manifests: charts/herald, from config/ and values.yaml"
	$(chart) generate $(CURDIR)

# Go and the linters cache the results for unchanged packages.
.PHONY: check
check: ## Run the checks for a commit: generated files, linters, unit tests
	@$(MAKE) verify lint test-unit

.PHONY: lint-fix
lint-fix: $(BIN)/golangci-lint ## Fix the linters' findings where possible
	@for module in . $(code_modules); do
	  (cd "$$module" && $(BIN)/golangci-lint run --fix --config $(CURDIR)/.golangci.yml ./...)
	done

# The program replaces the shell and so is a direct child of make: a signal sent to make reaches it. `go run` would not pass it on.
.PHONY: run
run: controlplane ## Run all of Herald on this machine, with simulated platforms, until Ctrl-C
	@exec $(BIN)/local run

.PHONY: test
test: ## Run everything that must pass before a change is merged; list at the end what could not run, and why
	@MAKE='$(MAKE)' hack/test.sh

# Single-threaded modules: the race detector would build all of their libraries a second time.
without_race := hack/chart hack/conform hack/flux hack/image

# Packages with long tests, and single-threaded models: the race detector has nothing to find there and takes many minutes. The code that
# reads the archive's lists concurrently, apiserver/archived and apiserver/postindex, is tested with it. So are the tests of
# internal/media/rendition that use several goroutines; the others loop over pixels.
slow_with_race := posting/explore test/schema/decode internal/archive/lists internal/media/rendition test/capacity

.PHONY: test-unit
test-unit: ## Run the unit tests: all packages that need only Go (RACE=1 for the race detector)
	@tested=$$($(tested))
	suites=$$($(suites))
	packages=$$(comm -23 <(echo "$$tested") <(echo "$$suites") | grep -vF $(addprefix -e /,$(slow_with_race)))
	if [ -n "$$packages" ]; then $(go_test) $$packages; else $(call not_run,unit tests; there are none); fi
	go test -timeout 60m $(addprefix ./,$(slow_with_race))
	# Many goroutines adding to a team's lists, checked against the model, and conversions of files.
	$(if $(RACE),$(go_test) -run Gather ./internal/archive/lists)
	$(if $(RACE),$(go_test) -run 'Extract|ConvertFails|Slot|Turns|Waiting|CreatedOnce|Child' -skip ScalesPixels ./internal/media/rendition)
	for module in $(filter-out $(without_race),$(code_modules)); do
	  (cd "$$module" && $(go_test) ./...)
	done
	for module in $(without_race); do
	  (cd "$$module" && GOWORK=off go test -timeout 60m ./...)
	done

# The program replaces the shell, so that a signal sent to make reaches it. It stops everything that it has started.
.PHONY: bench
bench: controlplane ## Benchmark Herald against its floor, the Kubernetes API (BENCH=B1,B3 for a subset; docs/performance.md)
	@go build -buildvcs=false -o $(BIN)/perf ./test/perf
	# B10 needs a manager that accepts receivers on this machine.
	$(if $(or $(findstring B10,$(BENCH)),$(if $(BENCH),,all)),go build -buildvcs=false -tags crashpoints -o $(BIN)/herald-crashpoints ./cmd/herald)
	exec $(BIN)/perf

include hack/make/lint.mk
include hack/make/build.mk
include hack/make/test.mk
include hack/make/browser.mk
include hack/make/chart.mk
include hack/make/images.mk
include hack/make/tools.mk
