// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// release identifies an installation to Helm.
type release struct {
	name, namespace string
}

// readValues reads values files. Later files take precedence.
func readValues(files ...string) (map[string]any, error) {
	all := map[string]any{}
	for _, file := range files {
		values, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		all = chartutil.MergeTables(values, all)
	}
	return all, nil
}

// renderChart validates the values against the schema and renders the chart in a folder as `helm template` does.
func renderChart(folder string, r release, values map[string]any) (string, error) {
	files, err := renderTemplates(folder, r, values)
	if err != nil {
		return "", err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		if path.Ext(name) == ".yaml" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out strings.Builder
	for _, name := range names {
		if text := strings.TrimSpace(files[name]); text != "" {
			fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", name, strings.TrimPrefix(text, "---\n"))
		}
	}
	return out.String(), nil
}

// renderTemplates returns the output of each template in the chart.
func renderTemplates(folder string, r release, values map[string]any) (map[string]string, error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot load the chart: %w", err)
	}
	options := chartutil.ReleaseOptions{Name: r.name, Namespace: r.namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, options, chartutil.DefaultCapabilities.Copy())
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// renderFolder renders a folder as `kustomize build` does.
func renderFolder(folder string) (string, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return "", err
	}
	text, err := resources.AsYaml()
	return string(text), err
}
