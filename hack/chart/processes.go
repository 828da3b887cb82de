// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// own is the release in config/.
var own = release{name: "herald", namespace: "herald-system"}

// helmLabels are the labels that only Helm's releases have.
var helmLabels = []string{"helm.sh/chart", "app.kubernetes.io/managed-by"}

// writeProcesses writes the objects of both processes to config/, rendered from the chart with the values of
// config/default, so the two installation methods cannot differ.
func writeProcesses(checkout string) error {
	config := filepath.Join(checkout, "config")
	values, err := readValues(filepath.Join(config, "default", "values.yaml"))
	if err != nil {
		return err
	}
	files, err := renderTemplates(filepath.Join(checkout, "charts", "herald"), own, values)
	if err != nil {
		return err
	}
	for _, to := range []string{"manager", "apiserver"} {
		var out bytes.Buffer
		out.WriteString("# Written by `make manifests` from charts/herald and config/default/values.yaml.\n")
		for _, name := range slices.Sorted(maps.Keys(files)) {
			// ServiceAccounts are in config/rbac.
			if path.Base(path.Dir(name)) != to && path.Base(name) != "networkpolicy.yaml" || path.Base(name) == "serviceaccount.yaml" {
				continue
			}
			if err := writeObjects(&out, files[name], to); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if err := os.WriteFile(filepath.Join(config, to, to+".yaml"), out.Bytes(), generated); err != nil {
			return err
		}
	}
	return nil
}

// writeObjects writes a component's objects from a rendered template, without Helm's metadata.
func writeObjects(out *bytes.Buffer, text, component string) error {
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return err
		}
		labels := part(object, "metadata", "labels")
		if labels["app.kubernetes.io/component"] != component {
			continue
		}
		for _, label := range helmLabels {
			delete(labels, label)
		}
		// Users patch the ConfigMap, and the checksum would not change with it.
		delete(part(object, "spec", "template", "metadata", "annotations"), "checksum/config")
		data, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	return nil
}

// part returns a nested map of an object, or nil if there is none.
func part(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}
