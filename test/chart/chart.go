// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart renders the Helm chart and the directories of config/ for suites, with the program in hack/chart. It is for tests only.
package chart

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/envtest"
)

// Render returns the chart's objects for a release in a namespace. values are files: names in charts/herald/ci, or absolute paths.
func Render(ctx context.Context, release, namespace string, values ...string) ([]*unstructured.Unstructured, error) {
	folder := filepath.Join(envtest.Root(), "charts", "herald")
	args := []string{"template", folder, release, namespace}
	for _, file := range values {
		if !filepath.IsAbs(file) {
			file = filepath.Join(folder, "ci", file)
		}
		args = append(args, file)
	}
	return run(ctx, args...)
}

// Kustomize returns the objects of a directory in config/, with everything that it references.
func Kustomize(ctx context.Context, folder string) ([]*unstructured.Unstructured, error) {
	return run(ctx, "kustomize", filepath.Join(envtest.Root(), "config", folder))
}

func run(ctx context.Context, args ...string) ([]*unstructured.Unstructured, error) {
	program := exec.CommandContext(ctx, "go", append([]string{"run", "."}, args...)...)
	program.Dir = filepath.Join(envtest.Root(), "hack", "chart")
	program.Env = append(os.Environ(), "GOWORK=off")
	var problem bytes.Buffer
	program.Stderr = &problem
	text, err := program.Output()
	if err != nil {
		return nil, fmt.Errorf("hack/chart: %w: %s", err, problem.String())
	}
	return cluster.ParseObjects(text)
}
