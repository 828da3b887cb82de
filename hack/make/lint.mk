##@ Check code

.PHONY: verify
verify: ## Fail if a generated file differs from its generator's output (and rewrite it)
	@MAKE='$(MAKE)' hack/verify.sh

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## Format all Go code
	$(BIN)/golangci-lint fmt

.PHONY: fmt-check
fmt-check: $(BIN)/golangci-lint ## Show what fmt would change, and fail if it would change anything
	$(BIN)/golangci-lint fmt --diff

.PHONY: vet
vet: ## Run go vet
	go vet ./...
	go vet -tags crashpoints ./cmd/...

# The nested modules that contain our code.
code_modules := $(foreach module,$(patsubst %/go.mod,%,$(wildcard hack/*/go.mod test/*/*/go.mod)),$(if $(wildcard $(module)/*.go),$(module)))

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

# Shipped code: the modules whose programs are in images.
shipped_modules := . hack/store

.PHONY: modules
modules: ## Fail if a module does not match go.sum, or if a go.mod lists something unused
	@for module in $(shipped_modules); do
	  echo "modules: $$module"
	  GOWORK=off go -C "$$module" mod verify
	done
	for module in . $(code_modules); do
	  if [ "$$module" != hack/tools ]; then GOWORK=off go -C "$$module" mod tidy -diff; fi
	done

# The Go team's database, or a copy such as file:///srv/vulndb.
VULNDB ?= https://vuln.go.dev

# govulncheck exits with 3 if the code calls something with a known vulnerability.
.PHONY: vuln
vuln: $(BIN)/govulncheck ## Check shipped code for known vulnerabilities with govulncheck (VULNDB=file:///... for a copy of the database)
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
	    $(call not_run,the search for known vulnerabilities; the database $(VULNDB) is unreachable. Use a copy: make vuln VULNDB=file:///path)
	    exit $$failed # of the modules before this one
	  elif [ $$status != 0 ]; then
	    exit $$status
	  fi
	done
	exit $$failed

# Both use the rule sets that their makers recommend, and a warning is a failure. --ignore-scripts: nothing from npm runs except the two.
.PHONY: lint-openapi
lint-openapi: ## Lint the OpenAPI documents with Redocly and Spectral (needs Node.js and npm)
	@cd hack/openapi
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true npx --no-install redocly lint --config redocly.yaml ../../apiserver/openapi/openapi.yaml ../../apiserver/openapi/openapi-v2.yaml
	npx --no-install spectral lint --fail-severity=hint --ruleset spectral.yaml ../../apiserver/openapi/openapi.yaml ../../apiserver/openapi/openapi-v2.yaml
