##@ Test in a browser

browsers := chromium chromium-browser google-chrome-stable google-chrome

# Chromium needs packages of the operating system, so it is installed: this is the only target that needs root. No other target calls it.
.PHONY: chromium
chromium: ## Install Debian's Chromium as root, if there is no Chromium or Chrome in PATH
	@if command -v $(browsers) >/dev/null; then exit 0; fi
	if ! command -v apt-get >/dev/null; then
	  echo "apt-get is not available: install Chromium or Chrome manually"
	  exit 1
	fi
	$(if $(filter-out 0,$(shell id -u)),sudo )apt-get install --yes --no-install-recommends chromium

# The accessibility checker (MPL-2.0), which only the test adds to pages. npm checks the package against its registry, and sha256sum checks
# the file against the one reviewed here.
axe_version := 4.14.1
axe_sha256 := 29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c

$(BIN)/axe.min.js: hack/make/browser.mk
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
	  echo "there is no Chromium or Chrome in PATH: install Debian's with make chromium"
	  exit 1
	fi

browser_test = KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/browser -count=1 -timeout 60m -ginkgo.no-color $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')

# Without a browser, `make test` continues and reports that at the end.
.PHONY: test-browser
test-browser: ## Test the pages in headless Chromium against the whole stack, each also with axe (FOCUS=, ATTACH=.local/env; docs/testing.md)
	@why=
	if ! command -v $(browsers) >/dev/null; then
	  why="there is no Chromium or Chrome in PATH: install Debian's with make chromium, as root"
	elif ! problem=$$($(MAKE) $(BIN)/axe.min.js 2>&1); then
	  why="axe cannot be fetched by npm: $${problem%%$$'\n'*}"
	fi
	if [ -n "$$why" ]; then
	  $(call not_run,pages in a browser; $$why)
	  [ -n "$${HERALD_TEST_NOTES:-}" ] && exit 0 || exit 1
	fi
	$(MAKE) browser
	$(browser_test) -ginkgo.label-filter='!lighthouse && !times' $(if $(ATTACH),-args -attach=$(abspath $(ATTACH)))

# --ignore-scripts: only the programs that the test starts run code from npm.
$(CURDIR)/test/agents/foreign/node_modules/.package-lock.json: test/agents/foreign/package-lock.json
	@npm --prefix $(CURDIR)/test/agents/foreign ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: test-agents
test-agents: ## Run MCP's conformance suite, inspector and SDKs, and OAuth clients against Herald's agent interfaces (FOCUS=)
	@why=
	if ! command -v $(browsers) >/dev/null; then
	  why="there is no Chromium or Chrome in PATH: install Debian's with make chromium, as root"
	elif ! problem=$$($(MAKE) $(CURDIR)/test/agents/foreign/node_modules/.package-lock.json $(BIN)/axe.min.js 2>&1); then
	  why="the clients cannot be fetched by npm: $${problem%%$$'\n'*}"
	fi
	if [ -n "$$why" ]; then
	  $(call not_run,third-party agents and clients; $$why)
	  [ -n "$${HERALD_TEST_NOTES:-}" ] && exit 0 || exit 1
	fi
	$(MAKE) browser
	KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/agents -count=1 -timeout 60m -ginkgo.no-color $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')

.PHONY: screenshots
screenshots: browser ## Take screenshots of every page in light, dark and phone width, into bin/screenshots (FOCUS=)
	@rm -rf $(BIN)/screenshots
	$(browser_test) -ginkgo.label-filter='!lighthouse && !times' -args -screenshots=$(BIN)/screenshots $(if $(ATTACH),-attach=$(abspath $(ATTACH)))

.PHONY: pictures
pictures: browser ## Recreate the pictures in docs/pictures in headless Chromium
	@KUBEBUILDER_ASSETS=$(ASSETS) go test ./test/docs -count=1 -timeout 10m -run TestPictures -args -pictures=$(CURDIR)/docs/pictures

# Lighthouse needs a newer Node.js than many systems have, so npm provides that too. --ignore-scripts: nothing from npm runs except these
# two.
.PHONY: lighthouse
lighthouse: browser ## Measure the pages with Lighthouse: each category must score at least 95 (FOCUS=)
	@npm --prefix hack/lighthouse ci --ignore-scripts --no-audit --no-fund --loglevel=error
	$(browser_test) -v -ginkgo.label-filter=lighthouse $(if $(ATTACH),-args -attach=$(abspath $(ATTACH)))

.PHONY: page-times
page-times: browser ## Print how long each page takes for a team with 10,000 posts
	@$(browser_test) -v -ginkgo.label-filter=times
