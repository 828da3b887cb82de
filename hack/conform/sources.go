// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is a Go module in the cache. A go.mod of the checkout pins its version, and go.sum verifies its content.
type module struct {
	Dir     string `json:"Dir"`
	Version string `json:"Version"`
	Error   string `json:"Error"`
}

// download downloads a module into the cache, at the version that the go.mod in the folder pins.
func download(ctx context.Context, folder, path string) (module, error) {
	program := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	program.Dir = folder
	program.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var problem bytes.Buffer
	program.Stderr = &problem
	answer, err := program.Output()
	var m module
	if decoding := json.Unmarshal(answer, &m); decoding != nil && err == nil {
		err = decoding
	}
	if err != nil || m.Error != "" {
		return module{}, fmt.Errorf("cannot download %s as %s pins it: %w %s %s", path, filepath.Join(folder, "go.mod"), err, m.Error, problem.String())
	}
	return m, nil
}

// kubernetes returns the folders whose go.mod pins the Kubernetes versions, oldest first.
func kubernetes() []string {
	return []string{filepath.Join("hack", "controlplane", "oldest"), filepath.Join("hack", "controlplane")}
}

// definitionsOfOthers returns other projects' CRD files for objects in the chart, by module.
func definitionsOfOthers() map[string][]string {
	return map[string][]string{
		"github.com/cert-manager/cert-manager": {
			"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml",
		},
		"github.com/prometheus-operator/prometheus-operator": {
			"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		},
		"sigs.k8s.io/gateway-api": {"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"},
	}
}

// writeSchemas writes the schemas of each Kubernetes version into its own folder and returns the versions, oldest
// first.
func writeSchemas(ctx context.Context, checkout, folder string) ([]string, error) {
	definitions, err := filepath.Glob(filepath.Join(checkout, "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return nil, err
	}
	for path, files := range definitionsOfOthers() {
		m, err := download(ctx, filepath.Join(checkout, "hack", "conform", "crds"), path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			definitions = append(definitions, filepath.Join(m.Dir, filepath.FromSlash(file)))
		}
	}
	var versions []string
	for _, pinned := range kubernetes() {
		m, err := download(ctx, filepath.Join(checkout, pinned), "k8s.io/kubernetes")
		if err != nil {
			return nil, err
		}
		document, err := os.ReadFile(filepath.Join(m.Dir, "api", "openapi-spec", "swagger.json"))
		if err != nil {
			return nil, err
		}
		s := schemas{folder: filepath.Join(folder, m.Version)}
		if err := s.fromOpenAPI(document); err != nil {
			return nil, fmt.Errorf("the OpenAPI document of Kubernetes %s: %w", m.Version, err)
		}
		for _, file := range definitions {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if err := s.fromDefinition(text); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		versions = append(versions, strings.TrimPrefix(m.Version, "v"))
	}
	return versions, nil
}
