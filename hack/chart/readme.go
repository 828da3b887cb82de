// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tableOf returns the values as README tables: one for each section, and one for the rest.
func tableOf(all []value) []byte {
	var out bytes.Buffer
	head := func(title, text string) {
		fmt.Fprintf(&out, "### %s\n\n%s\n\n| value | default | meaning |\n| --- | --- | --- |\n", title, text)
	}
	head("Everything", "What both processes share.")
	for _, v := range all {
		if len(v.children) == 0 {
			v.row(&out)
		}
	}
	for _, v := range all {
		if len(v.children) > 0 {
			out.WriteByte('\n')
			head("`"+v.name+"`", v.description)
			v.rows(&out)
		}
	}
	return out.Bytes()
}

func (v *value) rows(out *bytes.Buffer) {
	for _, child := range v.children {
		if len(child.children) == 0 {
			child.row(out)
			continue
		}
		fmt.Fprintf(out, "| `%s` | | %s |\n", child.path, cell(child.description))
		child.rows(out)
	}
	more, _ := v.schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(more)) {
		description := ""
		if property, ok := more[name].(map[string]any); ok {
			description, _ = property["description"].(string)
		}
		fmt.Fprintf(out, "| `%s` | none | %s |\n", join(v.path, name), cell(description))
	}
}

func (v *value) row(out *bytes.Buffer) {
	fmt.Fprintf(out, "| `%s` | %s | %s |\n", v.path, shown(v.node), cell(v.description))
}

// longestDefault is the maximum length of a default in a table.
const longestDefault = 80

// shown returns a default as text for a table cell, or a reference to values.yaml if it is too long.
func shown(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode && len(node.Content) == 0:
		return "`{}`"
	case node.Kind == yaml.SequenceNode && len(node.Content) == 0:
		return "`[]`"
	case node.Kind == yaml.ScalarNode && node.Value == "":
		return "none"
	case node.Kind == yaml.ScalarNode:
		return "`" + node.Value + "`"
	}
	if text, err := yaml.Marshal(bare(node)); err == nil && len(text) < longestDefault && bytes.Count(text, []byte("\n")) == 1 {
		return "`" + strings.TrimSpace(string(text)) + "`"
	}
	return "see `values.yaml`"
}

// bare returns a node without comments, on one line.
func bare(node *yaml.Node) *yaml.Node {
	copied := *node
	copied.HeadComment, copied.LineComment, copied.FootComment = "", "", ""
	if copied.Kind != yaml.ScalarNode {
		copied.Style = yaml.FlowStyle
	}
	copied.Content = nil
	for _, child := range node.Content {
		copied.Content = append(copied.Content, bare(child))
	}
	return &copied
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
