# Everything a contributor runs, from one place. `make` alone lists the everyday targets.
#
# What is built lands in bin/. Nothing is installed outside the checkout and nothing needs root, except for `make chromium`. All that is
# downloaded are Go modules, pinned in go.mod and in the go.mod files of hack/, Debian packages for one container image, pinned in
# hack/image, and from npm what looks at documents and pages and the clients of agents, pinned in hack/openapi, hack/lighthouse,
# test/agents/foreign, test/counting and below.

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

##@ Write and check code

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

# Writes the chart's generated files, and renders the chart and config/default, with Helm and Kustomize as libraries.
chart := GOWORK=off go -C hack/chart run .

# Generated files are those that .gitattributes says are, as a whole or in part.
generated_files := git ls-files --cached --others --exclude-standard -z -- ':(attr:linguist-generated)' ':(attr:generated-part)'

.PHONY: verify
verify: ## Fail if a generated file is not what its generator writes (it is rewritten on the way)
	@tmp=$$(mktemp -d)
	trap 'rm -rf "$$tmp"' EXIT
	snapshot() {
	  mkdir "$$tmp/$$1"
	  $(generated_files) | while IFS= read -r -d '' file; do
	    if [ -f "$$file" ]; then
	      mkdir -p "$$tmp/$$1/$$(dirname "$$file")"
	      cp "$$file" "$$tmp/$$1/$$file"
	    fi
	  done
	}
	snapshot before
	$(MAKE) manifests
	$(MAKE) generate
	snapshot after
	if ! (cd "$$tmp" && diff -ruN before after); then
	  echo
	  echo "verify: the files above were not up to date. They are now: look at them and commit them with what they are made from."
	  exit 1
	fi
	echo "verify: everything generated is up to date"
	go run ./hack/prose -worst 0

# Go and the linters keep the results of what has not changed.
.PHONY: check
check: ## What a change needs before it is committed: generated files, linters, unit tests
	@$(MAKE) verify lint test-unit

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## Format all Go code
	$(BIN)/golangci-lint fmt

.PHONY: fmt-check
fmt-check: $(BIN)/golangci-lint ## Show what fmt would change, and fail if it would
	$(BIN)/golangci-lint fmt --diff

.PHONY: vet
vet: ## Run go vet
	go vet ./...
	go vet -tags crashpoints ./cmd/...

# The nested modules that hold code of ours.
code_modules := $(foreach module,$(patsubst %/go.mod,%,$(wildcard hack/*/go.mod)),$(if $(wildcard $(module)/*.go),$(module)))

.PHONY: lint
lint: $(BIN)/golangci-lint ## Run all linters over all modules, and check their configuration
	@$(BIN)/golangci-lint config verify
	failed=0
	for module in . $(code_modules); do
	  echo "lint: $$module"
	  (cd "$$module" && $(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...) || failed=1
	done
	echo "lint: cmd, built for the crash matrix"
	$(BIN)/golangci-lint run --build-tags crashpoints ./cmd/... || failed=1
	exit $$failed

# What is shipped: the modules whose programs are in images.
shipped_modules := . hack/store

.PHONY: modules
modules: ## Fail if a module is not what go.sum says, or a go.mod names what nothing needs
	@for module in $(shipped_modules); do
	  echo "modules: $$module"
	  GOWORK=off go -C "$$module" mod verify
	done
	for module in . $(code_modules); do
	  if [ "$$module" != hack/tools ]; then GOWORK=off go -C "$$module" mod tidy -diff; fi
	done

# The database of the Go team, or a copy of it such as file:///srv/vulndb.
VULNDB ?= https://vuln.go.dev

# govulncheck ends with 3 if the code calls something that is known to be weak.
.PHONY: vuln
vuln: $(BIN)/govulncheck ## Look for known vulnerabilities in what is shipped, by govulncheck (VULNDB=file:///... for a copy of the database)
	@log=$$(mktemp)
	trap 'rm -f "$$log"' EXIT
	failed=0
	for module in $(shipped_modules); do
	  echo "vuln: $$module"
	  packages=$$([ "$$module" = . ] && echo ./cmd/... || echo ./...)
	  status=0
	  GOWORK=off $(BIN)/govulncheck -C "$$module" -db '$(VULNDB)' $$packages >"$$log" 2>&1 || status=$$?
	  cat "$$log"
	  if [ $$status = 3 ]; then
	    failed=1
	  elif [ $$status != 0 ] && grep -qE 'fetching vulnerabilities|no such host|connection refused|i/o timeout|dial tcp' "$$log"; then
	    $(call not_run,the search for known vulnerabilities; the database $(VULNDB) cannot be reached. Name a copy: make vuln VULNDB=file:///path)
	    exit $$failed # of the modules before this one
	  elif [ $$status != 0 ]; then
	    exit $$status
	  fi
	done
	exit $$failed

# Both with the rule sets that their makers recommend; a warning fails. --ignore-scripts: nothing that npm brings runs but the two.
.PHONY: lint-openapi
lint-openapi: ## Lint the OpenAPI document with Redocly and Spectral (needs Node.js and npm)
	@cd hack/openapi
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true npx --no-install redocly lint --config redocly.yaml ../../apiserver/openapi/openapi.yaml
	npx --no-install spectral lint --fail-severity=hint --ruleset spectral.yaml ../../apiserver/openapi/openapi.yaml

.PHONY: lint-fix
lint-fix: $(BIN)/golangci-lint ## Let the linters mend what they can
	@for module in . $(code_modules); do
	  (cd "$$module" && $(BIN)/golangci-lint run --fix --config $(CURDIR)/.golangci.yml ./...)
	done

##@ Install

chart_values := $(wildcard charts/herald/ci/*-values.yaml)

.PHONY: chart-lint
chart-lint: $(BIN)/helm ## Lint the chart with each of charts/herald/ci, run its unit tests, and compare its generated files
	@for values in $(chart_values); do $(BIN)/helm lint --strict --quiet charts/herald --values "$$values"; done
	(cd hack/chart && GOWORK=off go test ./...)
	$(MAKE) chart-conform verify

# The releases for which it is rendered have the names that hack/conform/explained.yaml speaks of.
.PHONY: chart-conform
chart-conform: ## Judge what the chart and config/ render by the oldest and newest Kubernetes (kubeconform), and by kube-score
	@folder=$$(mktemp -d)
	trap 'rm -rf "$$folder"' EXIT
	for values in $(chart_values); do
	  $(chart) template $(CURDIR)/charts/herald herald herald-system "$(CURDIR)/$$values" >"$$folder/$$(basename "$${values%-values.yaml}").yaml"
	done
	$(chart) kustomize $(CURDIR)/config/default >"$$folder/default.yaml"
	for sample in config/samples/*.yaml config/samples/*/*.yaml; do
	  printf -- '---\n'
	  cat "$$sample"
	done >"$$folder/samples.yaml"
	GOWORK=off go -C hack/conform run . --checkout $(CURDIR) "$$folder"/*.yaml

.PHONY: chart-package
chart-package: ## Package the chart as dist/herald-VERSION.tgz, with the tag of the images of the same commit (docs/releasing.md)
	@$(chart) package $(CURDIR) $(VERSION) $(CURDIR)/dist

.PHONY: build-installer
build-installer: ## Write dist/install.yaml, all of config/default in one file for kubectl, with the images of the same commit
	@mkdir -p dist
	$(chart) installer $(CURDIR) $(VERSION) >dist/install.yaml
	echo "dist/install.yaml: kubectl apply --server-side -f dist/install.yaml"

##@ Build and run

.PHONY: build
build: ## Build bin/herald and bin/herald-sandbox
	@go build -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o $(BIN)/ ./cmd/...

.PHONY: controlplane
controlplane: $(servers) $(BIN)/herald-store build ## Build what tests and the local run need: a Kubernetes control plane (or use KUBEBUILDER_ASSETS), S3 store, sandbox, herald

# What a killed build leaves must not pass for a program, so each is built under another name. A go.work around the checkout
# would replace the versions that the nested modules pin.
build_nested = export GOWORK=off; trap 'rm -f $@.$$$$' EXIT; go -C $(<D) build -ldflags "-s -w $$flags" -o $@.$$$$ $(package); mv $@.$$$$ $@

$(BIN)/herald-store: package := .
$(BIN)/herald-store: hack/store/go.mod hack/store/go.sum hack/store/main.go
	@echo "building bin/$(@F)"
	flags=
	$(build_nested)

# Without a version in them, kubectl and Helm refuse kube-apiserver, and kubectl takes every server for too new or too old.
$(BIN)/etcd: package := go.etcd.io/etcd/server/v3
$(BIN)/kube-apiserver: package := k8s.io/kubernetes/cmd/kube-apiserver
$(BIN)/kube-controller-manager: package := k8s.io/kubernetes/cmd/kube-controller-manager
$(BIN)/kubectl: package := k8s.io/kubernetes/cmd/kubectl
$(BIN)/oldest/kube-apiserver: package := k8s.io/kubernetes/cmd/kube-apiserver
$(addprefix $(BIN)/,etcd kube-apiserver kube-controller-manager kubectl): hack/controlplane/go.mod hack/controlplane/go.sum
# The oldest that Herald works with (cmd/herald/internal/preflight), for its suites.
$(BIN)/oldest/kube-apiserver: hack/controlplane/oldest/go.mod hack/controlplane/oldest/go.sum
$(addprefix $(BIN)/,etcd kube-apiserver kube-controller-manager kubectl oldest/kube-apiserver):
	@echo "building $(@:$(CURDIR)/%=%) (a few minutes the first time)"
	mkdir -p $(@D)
	version=$$(GOWORK=off go -C $(<D) list -m -f '{{.Version}}' k8s.io/kubernetes)
	IFS=. read -r major minor _ <<<"$${version#v}"
	set=-X\ k8s.io/component-base/version.
	flags="$${set}gitVersion=$$version $${set}gitMajor=$$major $${set}gitMinor=$$minor"
	$(build_nested)

# Flux's, with the clients of the clouds whose secrets it decrypts: minutes to build, so that only test-flux needs it.
$(BIN)/kustomize-controller: package := github.com/fluxcd/kustomize-controller
$(BIN)/kustomize-controller: hack/kustomize-controller/go.mod hack/kustomize-controller/go.sum
	@echo "building bin/$(@F) (some minutes the first time)"
	flags=
	$(build_nested)

# The program replaces the shell and is a child of make itself: a signal sent to make reaches it, which `go run` would not pass on.
.PHONY: run
run: controlplane ## Run all of Herald on this machine, with simulated platforms, until Ctrl-C
	@go build -buildvcs=false -o $(BIN)/local ./hack/local
	exec $(BIN)/local run

.PHONY: run-reset
run-reset: ## Forget the state of the local run
	@go build -buildvcs=false -o $(BIN)/local ./hack/local
	exec $(BIN)/local reset

.PHONY: clean
clean: ## Remove bin/ (the Go build cache stays, so building again is quick)
	rm -rf $(BIN)

##@ Test

# A package whose tests reach envtest is a suite: it needs an API server. All others are unit tests. What lies in test/agents,
# test/crash, test/e2e, test/browser, test/flux, test/hostile, test/oddfiles and test/perf has targets of its own.
suites = go list -test -f '{{$$p := .}}{{range .Deps}}{{if eq . "sigs.k8s.io/controller-runtime/pkg/envtest"}}{{$$p.ImportPath}}{{end}}{{end}}' ./... \
  | sed -nE '/\/test\/(agents|browser|crash|e2e|flux|hostile|oddfiles|perf)[.\/]/d; s/\.test$$//p' | sort -u
tested = go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... \
  | sed -E '/\/test\/(agents|browser|crash|e2e|flux|hostile|monitoring|oddfiles|perf)(\/|$$)/d; /^$$/d' | sort -u

# The limit is for a busy machine with two cores.
go_test = $(if $(RACE),CGO_ENABLED=1) go test $(if $(RACE),-race) -timeout 20m

# Says what was left out and why, at once and again at the end of `make test`.
not_run = printf 'not run: %s\n' "$(1)" | tee -a "$${HERALD_TEST_NOTES:-/dev/null}"

.PHONY: test
test: ## Everything that must hold before a change lands; says at the end what it could not run, and why
	@export HERALD_TEST_NOTES=$$(mktemp)
	beside=$$(mktemp -d)
	trap 'rm -rf "$$HERALD_TEST_NOTES" "$$beside"' EXIT
	race=1
	if ! why=$$(CGO_ENABLED=1 go build -race runtime/cgo 2>&1); then
	  race=
	  $(call not_run,the race detector; the tests ran without it. It needs cgo and a C compiler: $${why##*$$'\n'})
	fi
	if ! command -v ffmpeg >/dev/null; then
	  $(call not_run,tests that take pictures out of videos; there is no ffmpeg in PATH: apt-get install --no-install-recommends ffmpeg)
	fi
	results=()
	failed=0
	step() {
	  local name=$$1 start=$$SECONDS word=ok notes
	  notes=$$(wc -l <"$$HERALD_TEST_NOTES")
	  shift
	  printf '\n==> %s\n' "$$name"
	  "$$@" || { word=FAILED; failed=1; }
	  if [ $$word = ok ] && [ "$$(wc -l <"$$HERALD_TEST_NOTES")" != "$$notes" ]; then word='not run'; fi
	  results+=("$$(printf '%-7s %4ds  %s' "$$word" $$((SECONDS - start)) "$$name")")
	}
	step 'generated files (make verify)' $(MAKE) verify
	step 'modules are what go.sum says (make modules)' $(MAKE) modules
	step 'known vulnerabilities (make vuln)' $(MAKE) vuln
	step 'formatting and linters (make lint)' $(MAKE) lint
	step "unit tests (make test-unit$${race:+ RACE=1})" $(MAKE) test-unit RACE=$$race
	step 'chart by Kubernetes and kube-score (make chart-conform)' $(MAKE) chart-conform
	step 'suites with an API server (make test-integration)' $(MAKE) test-integration
	step 'alerts and dashboard in Prometheus (make test-monitoring)' $(MAKE) test-monitoring
	# They wait more than they work, so they run beside the crash matrix, one after the other. Each writes its notes, its output and
	# its exit code into a folder of its own.
	{
	  for target in test-upgrade test-browser test-agents test-counting test-oddfiles test-hostile; do
	    own=$$beside/$$target
	    mkdir "$$own"
	    : >"$$own/notes"
	    status=0
	    HERALD_TEST_NOTES="$$own/notes" $(MAKE) $$target LONG= SHORT=1 >"$$own/log" 2>&1 || status=$$?
	    echo "$$status" >"$$own/status"
	  done
	} &
	others=$$!
	begun() {
	  wait "$$others" || true
	  cat "$$beside/$$1/log"
	  cat "$$beside/$$1/notes" >>"$$HERALD_TEST_NOTES"
	  return "$$(cat "$$beside/$$1/status")"
	}
	step 'crash matrix, short (make test-crash)' $(MAKE) test-crash LONG=
	step 'upgrade and rollback, short (make test-upgrade), begun beside it' begun test-upgrade
	step 'pages in a browser (make test-browser), begun beside it' begun test-browser
	step 'agents and clients that others wrote (make test-agents), begun beside it' begun test-agents
	step 'counts of captions compared with others (make test-counting), begun beside it' begun test-counting
	step 'odd files to every platform, short (make test-oddfiles), begun beside it' begun test-oddfiles
	step 'strangers at every door, short (make test-hostile), begun beside it' begun test-hostile
	printf '\n==> summary\n'
	printf '%s\n' "$${results[@]}"
	cat "$$HERALD_TEST_NOTES"
	if [ $$failed = 1 ]; then
	  echo "make test: FAILED"
	  exit 1
	fi
	if [ -s "$$HERALD_TEST_NOTES" ]; then
	  echo "make test: what ran is fine; see above what did not run"
	else
	  echo "make test: all is well"
	fi

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

.PHONY: test-integration
test-integration: ## Suites that run against a real kube-apiserver and etcd (RACE=1 for the race detector)
	@packages=$$($(suites))
	if [ -z "$$packages" ]; then
	  $(call not_run,suites with an API server; there are none)
	  exit 0
	fi
	$(MAKE) controlplane $(BIN)/kubectl
	KUBEBUILDER_ASSETS=$(ASSETS) $(go_test) $$packages

.PHONY: test-oldest
test-oldest: $(BIN)/oldest/kube-apiserver ## The same suites against the oldest Kubernetes that Herald works with
	@$(MAKE) controlplane $(BIN)/kubectl
	cp -u $(BIN)/etcd $(BIN)/oldest/etcd
	KUBEBUILDER_ASSETS=$(BIN)/oldest $(go_test) -count=1 $$($(suites))

# What the package brings is unpacked and not installed, which needs no root.
.PHONY: prometheus
prometheus: ## Find Prometheus and promtool in PATH, or take them out of Debian's package into bin/prometheus
	@if [ -x $(BIN)/prometheus/usr/bin/promtool ] || { command -v prometheus && command -v promtool; } >/dev/null; then exit 0; fi
	if ! { command -v apt-get && command -v dpkg-deb; } >/dev/null; then
	  echo "there is no Prometheus in PATH, and no Debian to take it from: see https://prometheus.io/download"
	  exit 1
	fi
	tmp=$$(mktemp -d)
	trap 'rm -rf "$$tmp"' EXIT
	(cd "$$tmp" && apt-get download --quiet prometheus)
	rm -rf $(BIN)/prometheus
	dpkg-deb --extract "$$tmp"/prometheus_*.deb $(BIN)/prometheus

.PHONY: test-monitoring
test-monitoring: ## Play the alerts, the queries of the runbooks and those of the dashboard to a real Prometheus
	@if ! why=$$($(MAKE) prometheus 2>&1); then
	  $(call not_run,alerts and dashboard in Prometheus; it cannot be had: $${why%%$$'\n'*})
	fi
	go test ./test/monitoring/ -count=1

browsers := chromium chromium-browser google-chrome-stable google-chrome

# Chromium needs packages of the system around it, so it is installed: the one target that needs root. No other calls it.
.PHONY: chromium
chromium: ## Install Debian's Chromium as root, if there is no Chromium or Chrome in PATH
	@if command -v $(browsers) >/dev/null; then exit 0; fi
	if ! command -v apt-get >/dev/null; then
	  echo "there is no apt here: install Chromium or Chrome by hand"
	  exit 1
	fi
	$(if $(filter-out 0,$(shell id -u)),sudo )apt-get install --yes --no-install-recommends chromium

# The checker of accessibility (MPL-2.0), which pages get from the test alone. npm checks the package against its registry, sha256sum
# the file against what was looked at here.
axe_version := 4.14.1
axe_sha256 := 29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c

$(BIN)/axe.min.js: Makefile
	@tmp=$$(mktemp -d)
	trap 'rm -rf "$$tmp"' EXIT
	npm pack --silent --pack-destination "$$tmp" axe-core@$(axe_version) >/dev/null
	tar --extract --gzip --file="$$tmp/axe-core-$(axe_version).tgz" --directory="$$tmp" package/axe.min.js
	echo "$(axe_sha256)  $$tmp/package/axe.min.js" | sha256sum --quiet --check
	mkdir -p $(BIN)
	mv "$$tmp/package/axe.min.js" $@
	touch $@

.PHONY: browser
browser: controlplane $(BIN)/axe.min.js
	@if ! command -v $(browsers) >/dev/null; then
	  echo "there is no Chromium or Chrome in PATH; make chromium installs Debian's"
	  exit 1
	fi
	go build -buildvcs=false -o $(BIN)/local ./hack/local

browser_test = KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/browser -count=1 -timeout 30m -ginkgo.no-color $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')

# `make test` goes on without a browser, and says so in the end.
.PHONY: test-browser
test-browser: ## Use the pages in headless Chromium, against the whole stack, with axe on each (FOCUS=, ATTACH=.local/env; docs/testing.md)
	@why=
	if ! command -v $(browsers) >/dev/null; then
	  why="there is no Chromium or Chrome in PATH; make chromium installs Debian's, as root"
	elif ! problem=$$($(MAKE) $(BIN)/axe.min.js 2>&1); then
	  why="axe cannot be fetched by npm: $${problem%%$$'\n'*}"
	fi
	if [ -n "$$why" ]; then
	  $(call not_run,pages in a browser; $$why)
	  [ -n "$${HERALD_TEST_NOTES:-}" ] && exit 0 || exit 1
	fi
	$(MAKE) browser
	$(browser_test) -ginkgo.label-filter='!lighthouse && !times' $(if $(ATTACH),-args -attach=$(abspath $(ATTACH)))

# --ignore-scripts: nothing that npm brings runs but what the test starts.
$(CURDIR)/test/agents/foreign/node_modules/.package-lock.json: test/agents/foreign/package-lock.json
	@npm --prefix $(CURDIR)/test/agents/foreign ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: test-agents
test-agents: ## Let the conformance suite of MCP, its inspector and SDKs, and OAuth clients judge what there is for agents (FOCUS=)
	@why=
	if ! command -v $(browsers) >/dev/null; then
	  why="there is no Chromium or Chrome in PATH; make chromium installs Debian's, as root"
	elif ! problem=$$($(MAKE) $(CURDIR)/test/agents/foreign/node_modules/.package-lock.json $(BIN)/axe.min.js 2>&1); then
	  why="the clients cannot be fetched by npm: $${problem%%$$'\n'*}"
	fi
	if [ -n "$$why" ]; then
	  $(call not_run,agents and clients that others wrote; $$why)
	  [ -n "$${HERALD_TEST_NOTES:-}" ] && exit 0 || exit 1
	fi
	$(MAKE) browser
	KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/agents -count=1 -timeout 20m -ginkgo.no-color $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')

$(CURDIR)/test/counting/node_modules/.package-lock.json: test/counting/package-lock.json
	@npm --prefix $(CURDIR)/test/counting ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: test-counting
test-counting: ## Compare how captions are counted with twitter-text, ICU and Autolinker (COUNTING_TEXTS=, COUNTING_SEED=)
	@why=
	if ! command -v node >/dev/null; then
	  why="there is no Node.js in PATH"
	elif ! problem=$$($(MAKE) $(CURDIR)/test/counting/node_modules/.package-lock.json 2>&1); then
	  why="what counts them cannot be fetched by npm: $${problem%%$$'\n'*}"
	fi
	if [ -n "$$why" ]; then
	  $(call not_run,counts of captions compared with others; $$why)
	  [ -n "$${HERALD_TEST_NOTES:-}" ] && exit 0 || exit 1
	fi
	COUNTING_TEXTS=$(or $(COUNTING_TEXTS),20000) go test ./test/counting -count=1 -v

# Files whose encoders are missing are skipped, each with a word. `make test` says once why.
.PHONY: test-oddfiles
test-oddfiles: controlplane ## Send 240 odd files through the whole stack to every platform, and decode what arrives (SHORT=1 for a part, FOCUS= by name)
	@if ! command -v ffmpeg >/dev/null; then
	  $(call not_run,odd files that ffmpeg makes; there is no ffmpeg in PATH: apt-get install --no-install-recommends ffmpeg)
	fi
	go build -buildvcs=false -o $(BIN)/local ./hack/local
	# What passes is left out of the output, and what was skipped is not.
	KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/oddfiles -count=1 -v -timeout 30m -parallel 8 -run 'TestOddFiles$(if $(FOCUS),/$(FOCUS))' $(if $(SHORT),-short) \
	  | sed -E '/^ *(=== |--- PASS)/d'

.PHONY: test-flux
test-flux: controlplane $(BIN)/kustomize-controller ## Have Flux's kustomize-controller sync teams and posts as docs/gitops.md says (FOCUS= for a part)
	KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/flux -count=1 -v -timeout 30m $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')

# The team takes ten minutes, or a part of them by BENCH_SCALE.
.PHONY: test-hostile
test-hostile: controlplane ## Let strangers attack each door, then a team do its worst beside others (SHORT=1 for a part of the strangers; docs/security.md)
	@go build -buildvcs=false -o $(BIN)/local ./hack/local
	KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/hostile -count=1 -v -timeout 20m $(if $(SHORT),-short) $(if $(FOCUS),-run 'TestHostile/$(FOCUS)') \
	  | sed -E '/^ *(=== |--- PASS)/d'
	$(if $(SHORT),,BENCH=B-HOSTILE $(MAKE) bench)

.PHONY: screenshots
screenshots: browser ## Take a picture of every page in light, dark and phone width, into bin/screenshots (FOCUS=)
	@rm -rf $(BIN)/screenshots
	$(browser_test) -ginkgo.label-filter='!lighthouse && !times' -args -screenshots=$(BIN)/screenshots $(if $(ATTACH),-attach=$(abspath $(ATTACH)))

.PHONY: pictures
pictures: browser ## Make the pictures in docs/pictures anew, in headless Chromium
	@KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/docs -count=1 -timeout 10m -run TestPictures -args -pictures=$(CURDIR)/docs/pictures

# Lighthouse needs a newer Node.js than many systems have; npm brings that as well. --ignore-scripts: nothing that npm brings runs but
# the two.
.PHONY: lighthouse
lighthouse: browser ## Measure the pages with Lighthouse: at least 95 in each column (FOCUS=)
	@npm --prefix hack/lighthouse ci --ignore-scripts --no-audit --no-fund --loglevel=error
	$(browser_test) -v -ginkgo.label-filter=lighthouse $(if $(ATTACH),-args -attach=$(abspath $(ATTACH)))

.PHONY: page-times
page-times: browser ## Print how long each page takes with 10,000 posts in a team
	@$(browser_test) -v -ginkgo.label-filter=times

.PHONY: record-monitoring
record-monitoring: controlplane ## Record a run of the real processes anew, for the test of the dashboard (takes eight minutes)
	@$(MAKE) prometheus
	KUBEBUILDER_ASSETS=$(ASSETS) go run ./test/monitoring/record . test/monitoring/testdata/recorded.txt

.PHONY: test-crash
test-crash: ## Kill the manager at its worst moments and count what was published (LONG=1 for the full matrix, FOCUS= for a part, LIES= for the share of false refusals)
	@if [ ! -d test/crash ]; then
	  $(call not_run,crash matrix; there is no test/crash)
	  exit 0
	fi
	$(MAKE) controlplane
	KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/crash/... -v -count=1 $(if $(LONG),-timeout 12h -ginkgo.timeout 12h,-short -timeout 30m) \
	  $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')

# In a cluster of its own: it makes and deletes namespaces, definitions and a team there.
.PHONY: test-e2e
test-e2e: $(BIN)/helm $(BIN)/kubectl ## Install the chart in the cluster of the current kubeconfig and try it (SHORT=1, LOAD=, NODE=; docs/testing.md)
	@E2E_LOAD='$(LOAD)' E2E_NODE='$(NODE)' E2E_REGISTRY='$(REGISTRY)' E2E_TAG='$(TAG)' E2E_PREVIOUS='$(PREVIOUS)' SHORT='$(SHORT)' \
	  go test ./test/e2e -count=1 -v -timeout 90m -ginkgo.timeout 80m -ginkgo.no-color $(if $(FOCUS),-ginkgo.focus='$(FOCUS)') $(if $(SKIP),-ginkgo.skip='$(SKIP)')

.PHONY: test-explore
test-explore: ## Walk through every schedule of the delivery protocol within bounds (LONG=1 for one more fault)
	go test ./posting/explore/ -v -count=1 -run 'TestProtocol|TestLives$$|TestRewinds$$' $(if $(LONG),-timeout 12h -args -explore.long,-timeout 30m)

# The version that an upgrade comes from and a rollback leads to: a tag or a commit.
PREVIOUS ?= v0.1.0

# Without a history there is no earlier version; `make test` goes on then, and says so in the end.
.PHONY: test-upgrade
test-upgrade: ## Let the manager of PREVIOUS (v0.1.0) take turns with this one while both are killed, and roll back (LONG=1 for ten minutes)
	@if ! commit=$$(git rev-parse --quiet --verify '$(PREVIOUS)^{commit}' 2>/dev/null); then
	  why='the upgrade from $(PREVIOUS), which this clone does not have. Get it with: git fetch --tags --unshallow (without --unshallow if the clone is whole), or name another by PREVIOUS='
	  $(call not_run,$$why)
	  [ -n "$${HERALD_TEST_NOTES:-}" ] && exit 0 || exit 1
	fi
	$(MAKE) controlplane
	previous=$(BIN)/previous/$(subst /,-,$(PREVIOUS))-$${commit:0:12}
	if [ ! -d "$$previous" ]; then
	  echo "building $(PREVIOUS)"
	  checkout=$$(mktemp -d)
	  trap 'rm -rf "$$checkout"' EXIT
	  git archive "$$commit" | tar --extract --directory="$$checkout"
	  (cd "$$checkout" && GOWORK=off go build -buildvcs=false -tags crashpoints -ldflags '-X main.version=$(PREVIOUS)' -o herald ./cmd/herald)
	  rm -rf $(BIN)/previous
	  mkdir -p "$$previous.part"
	  mv "$$checkout/herald" "$$previous.part/herald"
	  mv "$$checkout/config/crd/bases" "$$previous.part/crd"
	  mv "$$previous.part" "$$previous"
	fi
	PREVIOUS_BUILD="$$previous" KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/crash/... -v -count=1 -ginkgo.label-filter=upgrade -ginkgo.no-color $(if $(LONG),-timeout 2h -ginkgo.timeout 2h,-short -timeout 30m)

# posting/explore is tests alone. A package takes minutes.
mutated := posting $(filter-out posting/explore,$(patsubst %/,%,$(wildcard posting/*/))) internal/transport apiserver/bridge

.PHONY: test-mutation
test-mutation: ## Change the code in small ways and see that tests notice (MUTATE=posting/rules for a part; hack/mutation)
	go run ./hack/mutation $(or $(MUTATE),$(mutated))

.PHONY: test-race
test-race: ## Unit tests and suites under the race detector (needs a C compiler)
	$(MAKE) test-unit test-integration RACE=1

# The program replaces the shell, so that a signal sent to make reaches it; it ends everything that it has started.
.PHONY: bench
bench: controlplane ## Measure Herald against its floor, the Kubernetes API (BENCH=B1,B3 runs a part; docs/performance.md)
	@go build -buildvcs=false -o $(BIN)/perf ./test/perf
	exec $(BIN)/perf

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (20s)
	@found=$$(git ls-files --cached --others --exclude-standard -- '*_test.go' | xargs grep -sHoE '^func Fuzz[A-Za-z0-9_]*' || true)
	if [ -z "$$found" ]; then
	  $(call not_run,fuzzing; there are no fuzz targets)
	  exit 0
	fi
	while IFS=: read -r file func; do
	  echo "==> $${func#func } in $$(dirname "$$file")"
	  (cd "$$(dirname "$$file")" && go test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) .)
	done <<<"$$found"

##@ Images

IMAGES ?= herald herald-ffmpeg herald-sandbox herald-store
IMAGE_ARCHS ?= amd64 arm64
IMAGE_REGISTRY ?= ghcr.io/herald-social
IMAGE_DIR ?= $(BIN)/images
IMAGE_CACHE ?= $(BIN)/images/cache

# What the images bear besides the version. The time is that of the commit, so that two builds of it are the same image.
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

# How this machine's Go is set up has no say in what is built.
image_go := env CGO_ENABLED=0 GOOS=linux GOFLAGS= GOWORK=off GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0
image_build = build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'
image_commands = $(if $(filter herald herald-ffmpeg,$(IMAGES)),./cmd/herald) $(if $(filter herald-sandbox,$(IMAGES)),./cmd/herald-sandbox)
image_tests = $(if $(filter herald-e2e-client,$(IMAGES)),./test/e2e/client)
image_flags = --images '$(IMAGES)' --architectures '$(IMAGE_ARCHS)' --programs $(IMAGE_DIR)/programs --cache $(IMAGE_CACHE) \
  --registry $(IMAGE_REGISTRY) --version $(VERSION) --revision '$(REVISION)' --created $(SOURCE_DATE_EPOCH)
image_program = GOWORK=off go -C hack/image run .

.PHONY: image
image: image-programs ## Pack container images into bin/images, without a container engine (docs/images.md)
	@$(image_program) pack --out $(IMAGE_DIR) $(image_flags)

.PHONY: image-tag
image-tag: ## Print the tag of the images of this checkout, for helm install --set image.tag=
	@echo $(VERSION)

.PHONY: image-programs
image-programs:
	@for arch in $(IMAGE_ARCHS); do
	  out=$(IMAGE_DIR)/programs/linux_$$arch
	  mkdir -p "$$out"
	  echo "building for linux/$$arch"
	  if [ -n '$(strip $(image_commands))' ]; then GOARCH=$$arch $(image_go) go $(image_build) -o "$$out/" $(image_commands); fi
	  if [ -n '$(image_tests)' ]; then GOARCH=$$arch $(image_go) go $(image_build) -o "$$out/herald-e2e-client" $(image_tests); fi
	  if [ -n '$(filter herald-store,$(IMAGES))' ]; then GOARCH=$$arch $(image_go) go -C hack/store $(image_build) -o "$$out/herald-store" .; fi
	done

.PHONY: image-files
image-files: image-programs ## Write the files of one image to OUT, for the Dockerfile (IMAGES=herald IMAGE_ARCHS=amd64 OUT=DIR)
	@$(image_program) unpack --out $(OUT) $(image_flags)

.PHONY: image-packages
image-packages: ## Pin today's Debian packages for the image with ffmpeg
	@$(image_program) packages --out . --cache $(IMAGE_CACHE) --architectures '$(IMAGE_ARCHS)'

# The second build is made in another folder. COLD=1 also lets it compile everything again, which takes minutes.
.PHONY: verify-image
verify-image: image ## Build the images again elsewhere, fail if a byte differs, and look into them (COLD=1 with an empty build cache)
	@again=$$(mktemp -d)
	trap 'rm -rf "$$again"' EXIT
	mkdir "$$again/checkout"
	git ls-files --cached --others --exclude-standard -z | tar --create --null --ignore-failed-read --files-from=- | tar --extract --directory="$$again/checkout"
	if [ -n "$(COLD)" ]; then export GOCACHE="$$again/build-cache"; fi
	$(MAKE) -C "$$again/checkout" image BIN="$$again/bin" IMAGE_CACHE=$(IMAGE_CACHE) IMAGE_DIR="$$again/images" \
	  VERSION=$(VERSION) REVISION=$(REVISION) SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH)
	for image in $(IMAGES); do
	  cmp $(IMAGE_DIR)/$$image.tar "$$again/images/$$image.tar"
	  for arch in $(IMAGE_ARCHS); do
	    cmp $(IMAGE_DIR)/$${image}_linux_$$arch.cdx.json "$$again/images/$${image}_linux_$$arch.cdx.json"
	  done
	done
	echo "verify-image: both builds are the same, byte for byte"
	GOWORK=off go -C hack/image test -count=1 -run TestArchives . -args -images=$(IMAGE_DIR) -architectures='$(IMAGE_ARCHS)'

##@ Tools

# A tool is built again when the module that pins it has changed.
$(BIN)/golangci-lint: package := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/gofumpt: package := mvdan.cc/gofumpt
$(BIN)/govulncheck: package := golang.org/x/vuln/cmd/govulncheck
$(BIN)/helm: package := helm.sh/helm/v3/cmd/helm
# The Kubernetes that `helm template` and `helm lint` render for; without it they take 1.20, which the chart refuses.
$(BIN)/helm: flags := $(foreach package,chartutil lint/rules,-X helm.sh/helm/v3/pkg/$(package).k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$(package).k8sVersionMinor=37)
tools := golangci-lint gofumpt govulncheck helm

.PHONY: tools
tools: $(tools:%=$(BIN)/%) $(BIN)/kubectl ## Build kubectl, helm, golangci-lint, gofumpt and govulncheck into bin/

$(tools:%=$(BIN)/%): hack/tools/go.mod hack/tools/go.sum
	@echo "building bin/$(@F) (a few minutes the first time)"
	go -C hack/tools build -ldflags '$(flags)' -o $@ $(package)
	touch $@
