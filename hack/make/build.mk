##@ Build

# The compiler takes a fifth less CPU time if it seldom collects garbage, and at most 500 MB of memory. Only for builds: Herald's own
# programs read GOGC too.
few_collections := GOGC=$${GOGC:-400}

.PHONY: build
build: ## Build bin/herald and bin/herald-sandbox
	@$(few_collections) go build -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o $(BIN)/ ./cmd/...

# The programs of a local run. One build links the programs side by side; local has no version to set.
.PHONY: programs
programs:
	@[ -e $(BIN)/local ] || echo "building herald, herald-sandbox and local into bin: up to 1 min the first time on two cores"
	$(few_collections) go build -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o $(BIN)/ ./cmd/... ./hack/local

.PHONY: controlplane
controlplane: servers $(BIN)/herald-store programs ## Build what tests and the local run need: a Kubernetes control plane (or use KUBEBUILDER_ASSETS), S3 store, sandbox, herald

# Where the control plane programs come from: by default released ones with a pinned checksum, if the network allows it; off builds all of
# them; a URL names a mirror.
export DOWNLOADS ?=

controlplane_programs := etcd kube-apiserver kube-controller-manager kubectl

# One call for all, so that they are built together.
.PHONY: servers
servers:
	@$(if $(strip $(servers)),$(few_collections) hack/controlplane.sh hack/controlplane $(BIN) $(notdir $(servers)))

$(controlplane_programs:%=$(BIN)/%): hack/controlplane/go.mod hack/controlplane/go.sum
	@$(few_collections) hack/controlplane.sh hack/controlplane $(BIN) $(@F)

# The oldest Kubernetes that Herald supports (cmd/herald/internal/preflight), for the suites.
$(BIN)/oldest/kube-apiserver: hack/controlplane/oldest/go.mod hack/controlplane/oldest/go.sum
	@$(few_collections) hack/controlplane.sh hack/controlplane/oldest $(BIN)/oldest $(@F)

.PHONY: controlplane-checksums
controlplane-checksums: ## Print the lines of hack/controlplane/checksums.txt for the pinned versions, checked against the published ones
	@go run ./hack/download -mirror '$(filter-out off,$(DOWNLOADS))' -checksums

# A killed build must not leave something that passes for a program, so each is built under another name. A go.work around the checkout
# would replace the versions that the nested modules pin.
build_nested = export GOWORK=off; trap 'rm -f $@.$$$$' EXIT; $(few_collections) go -C $(<D) build -ldflags "-s -w" -o $@.$$$$ $(package); mv $@.$$$$ $@

$(BIN)/herald-store: package := .
$(BIN)/herald-store: hack/store/go.mod hack/store/go.sum hack/store/main.go
	@echo "building herald-store into bin: about 1 min the first time on two cores"
	$(build_nested)

# Flux's controller, with the clients of the clouds whose secrets it decrypts. It takes minutes to build, so only test-flux needs it.
$(BIN)/kustomize-controller: package := github.com/fluxcd/kustomize-controller
$(BIN)/kustomize-controller: hack/kustomize-controller/go.mod hack/kustomize-controller/go.sum
	@echo "building bin/$(@F) (a few minutes the first time)"
	$(build_nested)

.PHONY: run-reset
run-reset: ## Delete the state of the local run
	@go build -buildvcs=false -o $(BIN)/local ./hack/local
	exec $(BIN)/local reset

.PHONY: clean
clean: ## Remove bin/ (the Go build cache remains, so the next build is fast)
	rm -rf $(BIN)
