// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"
	"strings"
)

// Field is a requested field: name, or name{…} with fields of the referenced object.
type Field struct {
	Name string
	Sub  []Field
}

// Fields parses the fields parameter; nil if it is missing.
func (p *Params) Fields() []Field {
	text := p.Text("fields")
	if text == "" {
		return nil
	}
	fields, rest, ok := parseFields(text)
	if (!ok || rest != "") && p.bad == nil {
		p.bad = Refusal(2500, "Syntax error in fields at character %d: %q", len(text)-len(rest), text)
	}
	return fields
}

// parseFields parses fields up to the end or a closing brace, and returns the rest.
func parseFields(text string) (fields []Field, rest string, ok bool) {
	for {
		end := strings.IndexFunc(text, func(r rune) bool { return !isFieldRune(r) })
		if end < 0 {
			end = len(text)
		}
		if end == 0 {
			return fields, text, false
		}
		field := Field{Name: text[:end]}
		text = text[end:]
		if strings.HasPrefix(text, "{") {
			if field.Sub, text, ok = parseFields(text[1:]); !ok || !strings.HasPrefix(text, "}") {
				return fields, text, false
			}
			text = text[1:]
		}
		fields = append(fields, field)
		if !strings.HasPrefix(text, ",") {
			return fields, text, true
		}
		text = text[1:]
	}
}

func isFieldRune(r rune) bool {
	return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// Node is a graph object.
type Node struct {
	// Type is the node's name in errors.
	Type string
	// Values are the fields with a value: a plain value, a Node, an Edge or a Wrapped.
	Values map[string]any
	// Known are all fields that can be requested.
	Known []string
	// Default are the fields returned without a request for specific ones.
	Default []string
}

// Edge is a list of nodes, encoded as {"data": […]}.
type Edge []Node

// Wrapped is a node encoded as {"data": {…}}.
type Wrapped Node

// Select returns a node's requested fields. The ID is always included.
func (n Node) Select(fields []Field) (map[string]any, *Error) {
	if fields == nil {
		for _, name := range n.Default {
			fields = append(fields, Field{Name: name})
		}
	}
	out := map[string]any{}
	if id, found := n.Values["id"]; found {
		out["id"] = id
	}
	for _, field := range fields {
		if !slices.Contains(n.Known, field.Name) {
			return nil, Refusal(100, "(#100) Tried accessing nonexisting field (%s) on node type (%s)", field.Name, n.Type)
		}
		value, found := n.Values[field.Name]
		if !found {
			continue // a known field without a value
		}
		shown, bad := selectValue(value, field)
		if bad != nil {
			return nil, bad
		}
		out[field.Name] = shown
	}
	return out, nil
}

func selectValue(value any, field Field) (any, *Error) {
	switch v := value.(type) {
	case Node:
		return v.Select(field.Sub)
	case Wrapped:
		shown, bad := Node(v).Select(field.Sub)
		return map[string]any{"data": shown}, bad
	case Edge:
		return selectEdge(v, field.Sub)
	}
	if field.Sub != nil {
		return nil, Refusal(2500, "Subfields are not supported by %s", field.Name)
	}
	return value, nil
}

func selectEdge(nodes Edge, fields []Field) (map[string]any, *Error) {
	data := []map[string]any{}
	for _, node := range nodes {
		shown, bad := node.Select(fields)
		if bad != nil {
			return nil, bad
		}
		data = append(data, shown)
	}
	return map[string]any{"data": data}, nil
}
