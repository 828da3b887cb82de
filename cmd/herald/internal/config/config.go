// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config reads the configuration files of Herald's processes, and reports all mistakes in a file at once. It
// also reads the files of secrets and certificate authorities that a configuration refers to.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// Mistake is one mistake in a file.
type Mistake struct {
	// Line is the mistake's line, starting at 1, or the section's line if a field is missing.
	Line int
	// Path is the field, such as media.endpoint; empty for the whole file.
	Path string
	// Problem describes the mistake, and Remedy the fix.
	Problem, Remedy string
}

// Mistakes holds all mistakes in a file, by line.
type Mistakes struct {
	File string
	List []Mistake
}

// Error returns one line per mistake: FILE:LINE: FIELD: problem; remedy.
func (m *Mistakes) Error() string {
	var out strings.Builder
	for i, mistake := range m.List {
		if i > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "%s:%d: ", m.File, mistake.Line)
		if mistake.Path != "" {
			out.WriteString(mistake.Path + ": ")
		}
		out.WriteString(mistake.Problem + "; " + mistake.Remedy)
	}
	return out.String()
}

// Manager reads a manager's configuration. Mistakes in the file are returned as *Mistakes.
func Manager(path string) (*configv1alpha1.ManagerConfiguration, error) {
	return read[*configv1alpha1.ManagerConfiguration](path, configv1alpha1.ManagerKind)
}

// APIServer reads an apiserver's configuration. Mistakes in the file are returned as *Mistakes.
func APIServer(path string) (*configv1alpha1.APIServerConfiguration, error) {
	return read[*configv1alpha1.APIServerConfiguration](path, configv1alpha1.APIServerKind)
}

// Check reads a file of either kind and returns the kind. Mistakes in the file are returned as *Mistakes.
func Check(path string) (kind string, err error) {
	config, err := read[any](path, "")
	switch config.(type) {
	case *configv1alpha1.ManagerConfiguration:
		kind = configv1alpha1.ManagerKind
	case *configv1alpha1.APIServerConfiguration:
		kind = configv1alpha1.APIServerKind
	}
	return kind, err
}

func read[T any](path, kind string) (config T, err error) {
	data, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own flag
	if err != nil {
		return config, fmt.Errorf("cannot read the configuration: %w", err)
	}
	found, mistakes := parse(data, kind)
	if len(mistakes) > 0 {
		slices.SortFunc(mistakes, func(a, b Mistake) int {
			return cmp.Or(a.Line-b.Line, strings.Compare(a.Path, b.Path), strings.Compare(a.Problem, b.Problem))
		})
		return config, &Mistakes{File: path, List: mistakes}
	}
	return found.(T), nil //nolint:forcetypeassert // parse returns the type of the kind
}

// parse parses and validates a file. An empty kind accepts either kind.
func parse(data []byte, kind string) (config any, mistakes []Mistake) {
	root, wrong := document(data)
	if wrong != nil {
		return nil, []Mistake{*wrong}
	}
	d := &decoder{lines: map[string]int{}, wrong: map[string]bool{}}
	found, line := scalarOf(root, "kind")
	switch {
	case kind != "" && found != kind && (found == configv1alpha1.ManagerKind || found == configv1alpha1.APIServerKind):
		d.mistake(line, "kind", "this is the file of the other process", "name a file of kind "+kind)
		return nil, d.mistakes
	case found == configv1alpha1.ManagerKind:
		config = configv1alpha1.DefaultManager()
	case found == configv1alpha1.APIServerKind:
		config = configv1alpha1.DefaultAPIServer()
	default:
		d.mistake(line, "kind", fmt.Sprintf("%q is not a kind of configuration", found),
			"write "+configv1alpha1.ManagerKind+" or "+configv1alpha1.APIServerKind)
		return nil, d.mistakes
	}
	if version, line := scalarOf(root, "apiVersion"); version != configv1alpha1.APIVersion {
		d.mistake(line, "apiVersion", fmt.Sprintf("%q is not a version that this program reads", version), "write "+configv1alpha1.APIVersion)
	}
	d.value(root, reflect.ValueOf(config).Elem(), "")
	j := &validator{decoder: d}
	switch config := config.(type) {
	case *configv1alpha1.ManagerConfiguration:
		j.manager(config)
	case *configv1alpha1.APIServerConfiguration:
		j.apiserver(config)
	}
	return config, d.mistakes
}

// document returns the only document of a file.
func document(data []byte) (*yaml.Node, *Mistake) {
	var root, more yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(data))
	err := documents.Decode(&root)
	if errors.Is(err, io.EOF) || err == nil && (len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode) {
		return nil, &Mistake{Line: 1, Problem: "the file contains no fields", Remedy: "write apiVersion: " + configv1alpha1.APIVersion + " and kind first"}
	}
	if err == nil {
		if err = documents.Decode(&more); err == nil {
			return nil, &Mistake{Line: more.Line, Problem: "a second document starts here", Remedy: "keep one document per file"}
		}
	}
	if !errors.Is(err, io.EOF) {
		line := 1
		problem := strings.TrimPrefix(err.Error(), "yaml: ")
		if _, scanned := fmt.Sscanf(problem, "line %d:", &line); scanned == nil {
			_, problem, _ = strings.Cut(problem, ": ")
		}
		return nil, &Mistake{Line: line, Problem: "this is not YAML: " + problem, Remedy: "fix it and check again: the rest was not read"}
	}
	return root.Content[0], nil
}

// scalarOf returns a field of the document and its line, or "" and the line of the document.
func scalarOf(root *yaml.Node, name string) (value string, line int) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == name {
			return root.Content[i+1].Value, root.Content[i].Line
		}
	}
	return "", root.Line
}
