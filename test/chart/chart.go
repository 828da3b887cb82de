// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart renders the Helm chart and the folders of config/ for suites, with the program of hack/chart. It is for
// tests only.
package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Render returns the chart as a release in a namespace has it, with files of values: names in charts/herald/ci, or
// absolute paths.
func Render(ctx context.Context, release, namespace string, values ...string) ([]*unstructured.Unstructured, error) {
	folder := filepath.Join(root(), "charts", "herald")
	args := []string{"template", folder, release, namespace}
	for _, file := range values {
		if !filepath.IsAbs(file) {
			file = filepath.Join(folder, "ci", file)
		}
		args = append(args, file)
	}
	return run(ctx, args...)
}

// Kustomize returns what a folder of config/ contains with all that it refers to.
func Kustomize(ctx context.Context, folder string) ([]*unstructured.Unstructured, error) {
	return run(ctx, "kustomize", filepath.Join(root(), "config", folder))
}

func run(ctx context.Context, args ...string) ([]*unstructured.Unstructured, error) {
	program := exec.CommandContext(ctx, "go", append([]string{"run", "."}, args...)...)
	program.Dir = filepath.Join(root(), "hack", "chart")
	program.Env = append(os.Environ(), "GOWORK=off")
	var problem bytes.Buffer
	program.Stderr = &problem
	text, err := program.Output()
	if err != nil {
		return nil, fmt.Errorf("hack/chart: %w: %s", err, problem.String())
	}
	return objectsIn(text)
}

func objectsIn(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// root is the folder of the main module, wherever the test is started.
func root() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "."
	}
	return filepath.Join(filepath.Dir(file), "..", "..")
}
