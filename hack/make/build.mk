##@ Build

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

.PHONY: run-reset
run-reset: ## Forget the state of the local run
	@go build -buildvcs=false -o $(BIN)/local ./hack/local
	exec $(BIN)/local reset

.PHONY: clean
clean: ## Remove bin/ (the Go build cache stays, so building again is quick)
	rm -rf $(BIN)
