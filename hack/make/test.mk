##@ Test

# A package whose tests depend on envtest is a suite: it needs an API server. All others are unit tests. test/agents, test/crash, test/e2e,
# test/browser, test/flux, test/hostile, test/oddfiles and test/perf have their own targets.
suites = go list -test -f '{{$$p := .}}{{range .Deps}}{{if eq . "sigs.k8s.io/controller-runtime/pkg/envtest"}}{{$$p.ImportPath}}{{end}}{{end}}' ./... \
  | sed -nE '/\/test\/(agents|browser|crash|e2e|flux|hostile|oddfiles|perf)[.\/]/d; s/\.test$$//p' | sort -u
tested = go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... \
  | sed -E '/\/test\/(agents|browser|crash|e2e|flux|hostile|monitoring|oddfiles|perf)(\/|$$)/d; /^$$/d' | sort -u

# The number of concurrent test programs: most tests wait more than they compute.
PROCS ?= 4

# The timeout allows for a machine with two cores that others use, too, where tests of low priority can take ten times as long.
go_test = $(if $(RACE),CGO_ENABLED=1) go test $(if $(RACE),-race) -p $(PROCS) -timeout 60m

# The specs of suites that take minutes are divided among PROCS processes, each with its own API server. Ginkgo shows the output of a
# process only if it dies, so a data race kills it. go test runs those tests in these packages that are not specs.
divided_suites := controllers/post
divided := '^(TestPostController|TestCrash)$$'
ginkgo = $(if $(RACE),CGO_ENABLED=1 GORACE=halt_on_error=1) go tool ginkgo -procs=$(PROCS) --no-color $(if $(RACE),-race)

# Reports omitted checks and the reasons, at once and again at the end of `make test`.
not_run = printf 'not run: %s\n' "$(1)" | tee -a "$${HERALD_TEST_NOTES:-/dev/null}"

.PHONY: test-integration
test-integration: ## Run the suites against a real kube-apiserver and etcd (RACE=1 for the race detector)
	@packages=$$($(suites))
	if [ -z "$$packages" ]; then
	  $(call not_run,suites with an API server; there are none)
	  exit 0
	fi
	$(MAKE) controlplane $(BIN)/kubectl
	export KUBEBUILDER_ASSETS=$(ASSETS)
	failed=0
	$(ginkgo) --timeout=60m $(addprefix ./,$(divided_suites)) -- -test.run $(divided) || failed=1
	$(go_test) -skip $(divided) $$packages || failed=1
	exit $$failed

.PHONY: test-oldest
test-oldest: $(BIN)/oldest/kube-apiserver ## Run the same suites against the oldest Kubernetes that Herald supports
	@$(MAKE) controlplane
	cp -u $(BIN)/etcd $(BIN)/oldest/etcd
	$(MAKE) test-integration ASSETS=$(BIN)/oldest

# The package's files are unpacked instead of installed, so root is not needed.
.PHONY: prometheus
prometheus: ## Find Prometheus and promtool in PATH, or unpack them from Debian's package into bin/prometheus
	@if [ -x $(BIN)/prometheus/usr/bin/promtool ] || { command -v prometheus && command -v promtool; } >/dev/null; then exit 0; fi
	if ! { command -v apt-get && command -v dpkg-deb; } >/dev/null; then
	  echo "there is no Prometheus in PATH, and no Debian to get it from: install it from https://prometheus.io/download"
	  exit 1
	fi
	tmp=$$(mktemp -d)
	trap 'rm -rf "$$tmp"' EXIT
	(cd "$$tmp" && apt-get download --quiet prometheus)
	rm -rf $(BIN)/prometheus
	dpkg-deb --extract "$$tmp"/prometheus_*.deb $(BIN)/prometheus

.PHONY: test-monitoring
test-monitoring: ## Run the alerts and the queries of the runbooks and the dashboard in a real Prometheus
	@if ! why=$$($(MAKE) prometheus 2>&1); then
	  $(call not_run,alerts and dashboard in Prometheus; it is not available: $${why%%$$'\n'*})
	fi
	go test ./test/monitoring/ -count=1

$(CURDIR)/test/counting/node_modules/.package-lock.json: test/counting/package-lock.json
	@npm --prefix $(CURDIR)/test/counting ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: test-counting
test-counting: ## Compare caption counting with twitter-text, ICU and Autolinker (COUNTING_TEXTS=, COUNTING_SEED=)
	@why=
	if ! command -v node >/dev/null; then
	  why="there is no Node.js in PATH"
	elif ! problem=$$($(MAKE) $(CURDIR)/test/counting/node_modules/.package-lock.json 2>&1); then
	  why="what counts them cannot be fetched by npm: $${problem%%$$'\n'*}"
	fi
	if [ -n "$$why" ]; then
	  $(call not_run,comparison of caption counts; $$why)
	  [ -n "$${HERALD_TEST_NOTES:-}" ] && exit 0 || exit 1
	fi
	COUNTING_TEXTS=$(or $(COUNTING_TEXTS),20000) go test ./test/counting -count=1 -v

$(CURDIR)/test/signatures/node_modules/.package-lock.json: test/signatures/package-lock.json
	@npm --prefix $(CURDIR)/test/signatures ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: test-signatures
test-signatures: ## Verify notification signatures with the JavaScript library of Standard Webhooks
	@why=
	if ! command -v node >/dev/null; then
	  why="there is no Node.js in PATH"
	elif ! problem=$$($(MAKE) $(CURDIR)/test/signatures/node_modules/.package-lock.json 2>&1); then
	  why="the library cannot be fetched by npm: $${problem%%$$'\n'*}"
	fi
	if [ -n "$$why" ]; then
	  $(call not_run,notification signatures in JavaScript; $$why)
	  [ -n "$${HERALD_TEST_NOTES:-}" ] && exit 0 || exit 1
	fi
	go test ./test/signatures -count=1

# Installs Bluesky's server, or sets why to what is missing.
define install_bluesky
why=
if [ "$$(uname -s)" != Linux ] || ! command -v npm >/dev/null; then
  why="it takes Linux, and npm in PATH"
elif ! command -v g++ >/dev/null || ! command -v python3 >/dev/null; then
  why="its database needs a compiler and Python: apt-get install --no-install-recommends g++ make python3"
elif ! problem=$$($(MAKE) $(CURDIR)/test/bluesky/node_modules/.package-lock.json 2>&1); then
  why="it cannot be fetched by npm, or built: $$(tail -n 1 <<<"$$problem")"
fi
endef

.PHONY: bluesky
bluesky: ## Install Bluesky's own server, which make run then starts (600 MB, takes minutes)
	@echo "installing Bluesky's own server into test/bluesky: a few minutes the first time on two cores"
	$(install_bluesky)
	if [ -n "$$why" ]; then
	  echo "not installed: $$why"
	  exit 1
	fi
	echo "installed; start it with make run"

# Bluesky's server needs Node.js 22, which npm provides, with the headers for better-sqlite3. Of npm's scripts, only that one's compiler runs.
$(CURDIR)/test/bluesky/node_modules/.package-lock.json: test/bluesky/package-lock.json
	@npm --prefix $(CURDIR)/test/bluesky ci --ignore-scripts --no-audit --no-fund --loglevel=error
	node=$$(echo $(CURDIR)/test/bluesky/node_modules/node-linux-*)
	PATH="$$node/bin:$$PATH" npm_config_nodedir="$$node" npm_config_build_from_source=true \
	  npm --prefix $(CURDIR)/test/bluesky rebuild better-sqlite3 --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: test-bluesky
test-bluesky: controlplane $(BIN)/kubectl ## Publish to Bluesky's own server, and read everything back with its own client (FOCUS= for a test, LONG=1 for more kills)
	@$(install_bluesky)
	if [ -n "$$why" ]; then
	  $(call not_run,Bluesky's own server; $$why)
	  [ -n "$${HERALD_TEST_NOTES:-}" ] && exit 0 || exit 1
	fi
	KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/bluesky -count=1 -v -timeout $(if $(LONG),60m,20m) $(if $(FOCUS),-run '$(FOCUS)') $(if $(LONG),-args -long)

$(CURDIR)/test/mastodon/node_modules/.package-lock.json: test/mastodon/package-lock.json
	@npm --prefix $(CURDIR)/test/mastodon ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: test-mastodon
test-mastodon: ## Test the sandbox's Mastodon server with independent clients, which also read what Herald publishes (FOCUS= for a client)
	@why=
	if ! command -v node >/dev/null; then
	  why="there is no Node.js in PATH"
	elif ! problem=$$($(MAKE) $(CURDIR)/test/mastodon/node_modules/.package-lock.json 2>&1); then
	  why="the clients cannot be fetched by npm: $${problem%%$$'\n'*}"
	fi
	if [ -n "$$why" ]; then
	  $(call not_run,Mastodon clients; $$why)
	  [ -n "$${HERALD_TEST_NOTES:-}" ] && exit 0 || exit 1
	fi
	go test ./test/mastodon -count=1 -timeout 10m $(if $(FOCUS),-run 'TestClients/$(FOCUS)')

# Files whose encoders are missing are skipped, with a message each. `make test` reports the reason once.
.PHONY: test-oddfiles
test-oddfiles: controlplane ## Send 240 odd files through the whole stack to every platform, and decode what arrives (SHORT=1 for a subset, FOCUS= by name)
	@if ! command -v ffmpeg >/dev/null; then
	  $(call not_run,odd files that ffmpeg makes; there is no ffmpeg in PATH: apt-get install --no-install-recommends ffmpeg)
	fi
	# Omit passed specs, but not skipped ones.
	KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/oddfiles -count=1 -v -timeout 60m -parallel 8 -run 'TestOddFiles$(if $(FOCUS),/$(FOCUS))' $(if $(SHORT),-short) \
	  | sed -E '/^ *(=== |--- PASS)/d'

.PHONY: test-flux
test-flux: controlplane $(BIN)/kustomize-controller ## Let Flux's kustomize-controller sync teams and posts as docs/gitops.md describes (FOCUS= for a subset)
	KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/flux -count=1 -v -timeout 60m $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')

# The team takes ten minutes, or the share of them set by BENCH_SCALE.
.PHONY: test-hostile
test-hostile: controlplane ## Attack every endpoint without a key, then as a hostile team among others (SHORT=1 for fewer clients; docs/security.md)
	@KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/hostile -count=1 -v -timeout 60m $(if $(SHORT),-short) $(if $(FOCUS),-run 'TestHostile/$(FOCUS)') \
	  | sed -E '/^ *(=== |--- PASS)/d'
	$(if $(SHORT),,BENCH=B-HOSTILE $(MAKE) bench)

# How long a soak takes: long enough for leaks of a few bytes in each request, or in `make test` for processes that grow quickly.
SOAK ?= $(if $(SHORT),3m,2h)

# The program replaces the shell, so that a signal sent to make reaches it. It stops everything that it has started.
.PHONY: soak
soak: controlplane $(BIN)/kubectl ## Exercise an installation for SOAK (2h) with faults, restarts and a hostile team: no post is lost or published twice, and no process grows
	@go build -buildvcs=false -o $(BIN)/perf ./test/perf
	SOAK=$(SOAK) KUBEBUILDER_ASSETS=$(ASSETS) exec $(BIN)/perf soak

.PHONY: capacity
capacity: ## Simulate a thousand teams for a year, and print the tables for docs/capacity.md
	@go run ./test/capacity

.PHONY: record-monitoring
record-monitoring: controlplane ## Record a new run of the real processes for the dashboard's test (takes eight minutes)
	@$(MAKE) prometheus
	KUBEBUILDER_ASSETS=$(ASSETS) go run ./test/monitoring/record . test/monitoring/testdata/recorded.txt

.PHONY: test-crash
test-crash: ## Kill the manager at critical points and count the publications (LONG=1 for the full matrix, FOCUS= for a subset, LIES= for the share of false refusals)
	@if [ ! -d test/crash ]; then
	  $(call not_run,crash matrix; there is no test/crash)
	  exit 0
	fi
	$(MAKE) controlplane
	export KUBEBUILDER_ASSETS=$(ASSETS)
	$(go_test) -count=1 -skip $(divided) ./test/crash/...
	$(ginkgo) -v --timeout=$(if $(LONG),12h,60m) $(if $(FOCUS),--focus='$(FOCUS)') ./test/crash/... -- -test.run $(divided) $(if $(LONG),,-test.short)
	$(if $(LONG),$(if $(FOCUS),,HERALD_TEST_NOTES=$${HERALD_TEST_NOTES:-/dev/null} $(MAKE) test-bluesky FOCUS=TestKilledManagers))

# Use a separate cluster: the test creates and deletes namespaces, CRDs and a team there.
.PHONY: test-e2e
test-e2e: $(BIN)/helm $(BIN)/kubectl ## Install the chart in the cluster of the current kubeconfig and test it (SHORT=1, LOAD=, NODE=; docs/testing.md)
	@E2E_LOAD='$(LOAD)' E2E_NODE='$(NODE)' E2E_REGISTRY='$(REGISTRY)' E2E_TAG='$(TAG)' E2E_PREVIOUS='$(PREVIOUS)' SHORT='$(SHORT)' \
	  go test ./test/e2e -count=1 -v -timeout 90m -ginkgo.timeout 80m -ginkgo.no-color $(if $(FOCUS),-ginkgo.focus='$(FOCUS)') $(if $(SKIP),-ginkgo.skip='$(SKIP)')

.PHONY: test-explore
test-explore: ## Explore every schedule of the delivery protocol within bounds (LONG=1 for one more fault)
	go test ./posting/explore/ -v -count=1 -run 'TestProtocol|TestShards|TestLives$$|TestRewinds$$' $(if $(LONG),-timeout 12h -args -explore.long,-timeout 30m)

# The version to upgrade from and roll back to: a tag or a commit.
PREVIOUS ?= v0.1.0

# A shallow clone has no earlier version. `make test` then continues and reports that at the end.
.PHONY: test-upgrade
test-upgrade: ## Alternate between the managers of PREVIOUS (v0.1.0) and this checkout while killing both, then roll back (LONG=1 for ten minutes)
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

# posting/explore contains only tests. Each package takes minutes.
mutated := posting $(filter-out posting/explore,$(patsubst %/,%,$(wildcard posting/*/))) internal/transport apiserver/bridge

.PHONY: test-mutation
test-mutation: ## Mutate the code and check that the tests detect it (MUTATE=posting/rules for a subset; hack/mutation)
	go run ./hack/mutation $(or $(MUTATE),$(mutated))

.PHONY: test-race
test-race: ## Run unit tests and suites under the race detector (needs a C compiler)
	$(MAKE) test-unit test-integration RACE=1

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
