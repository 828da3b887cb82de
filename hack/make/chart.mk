##@ Install

# Writes the chart's generated files, and renders the chart and config/default, with Helm and Kustomize as libraries.
chart := GOWORK=off go -C hack/chart run .

chart_values := $(wildcard charts/herald/ci/*-values.yaml)

.PHONY: chart-lint
chart-lint: $(BIN)/helm ## Lint the chart with each file in charts/herald/ci, run its unit tests, and compare its generated files
	@for values in $(chart_values); do $(BIN)/helm lint --strict --quiet charts/herald --values "$$values"; done
	(cd hack/chart && GOWORK=off go test ./...)
	$(MAKE) chart-conform verify

# The names of the releases to render, which hack/conform/explained.yaml refers to.
.PHONY: chart-conform
chart-conform: ## Check the rendered chart and config/, for the oldest and newest Kubernetes (kubeconform) and with kube-score
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
chart-package: ## Package the chart as dist/herald-VERSION.tgz, with the image tag of the same commit (docs/releasing.md)
	@$(chart) package $(CURDIR) $(VERSION) $(CURDIR)/dist

.PHONY: build-installer
build-installer: ## Write dist/install.yaml, all of config/default in one file for kubectl, with the images of the same commit
	@mkdir -p dist
	$(chart) installer $(CURDIR) $(VERSION) >dist/install.yaml
	echo "dist/install.yaml: kubectl apply --server-side -f dist/install.yaml"
