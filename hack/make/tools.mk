##@ Tools

# A tool is rebuilt when the module that pins it changes.
$(BIN)/golangci-lint: package := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/gofumpt: package := mvdan.cc/gofumpt
$(BIN)/govulncheck: package := golang.org/x/vuln/cmd/govulncheck
$(BIN)/helm: package := helm.sh/helm/v3/cmd/helm
# The Kubernetes version that `helm template` and `helm lint` render for. By default it is 1.20, which the chart rejects.
$(BIN)/helm: flags := $(foreach package,chartutil lint/rules,-X helm.sh/helm/v3/pkg/$(package).k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$(package).k8sVersionMinor=37)
tools := golangci-lint gofumpt govulncheck helm

.PHONY: tools
tools: $(tools:%=$(BIN)/%) $(BIN)/kubectl ## Build kubectl, helm, golangci-lint, gofumpt and govulncheck into bin/

$(tools:%=$(BIN)/%): hack/tools/go.mod hack/tools/go.sum
	@echo "building bin/$(@F) (a few minutes the first time)"
	go -C hack/tools build -ldflags '$(flags)' -o $@ $(package)
	touch $@
