// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is one entry of values.yaml and the comment above it. Comment lines that start with "@schema" contain JSON
// Schema keywords in YAML flow style that cannot be derived from the default.
type value struct {
	path, name  string
	description string
	schema      map[string]any
	node        *yaml.Node
	// children are the entries of a section. A section with schema keywords for its properties is a leaf.
	children []value
}

const mark = "@schema "

// parseValues parses values.yaml. Every entry must have a comment.
func parseValues(text []byte) ([]value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 {
		return nil, errors.New("want one document")
	}
	return entriesOf(document.Content[0], "")
}

func entriesOf(section *yaml.Node, path string) ([]value, error) {
	var all []value
	for i := 0; i+1 < len(section.Content); i += 2 {
		key, node := section.Content[i], section.Content[i+1]
		v := value{path: join(path, key.Value), name: key.Value, node: node}
		if err := v.read(key.HeadComment); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", key.Line, v.path, err)
		}
		if node.Kind == yaml.MappingNode && len(node.Content) > 0 && v.schema["additionalProperties"] == nil && v.schema["$ref"] == nil {
			var err error
			if v.children, err = entriesOf(node, v.path); err != nil {
				return nil, err
			}
		}
		all = append(all, v)
	}
	return all, nil
}

func (v *value) read(comment string) error {
	var words []string
	for line := range strings.SplitSeq(comment, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		if keywords, found := strings.CutPrefix(line, mark); found {
			if err := yaml.Unmarshal([]byte(keywords), &v.schema); err != nil {
				return fmt.Errorf("%s: %w", mark, err)
			}
			continue
		}
		words = append(words, line)
	}
	v.description = strings.TrimSpace(strings.Join(words, " "))
	if v.description == "" {
		return errors.New("there is no comment above it")
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
