// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"

	"go.yaml.in/yaml/v3"
)

// definitions are the schemas shared by several values, and the schemas of Kubernetes' own objects.
//
//go:embed definitions.yaml
var definitions []byte

// schemaOf returns the JSON Schema of the values. It rejects values that are not in values.yaml, except for "global",
// which Helm adds to a subchart.
func schemaOf(all []value) ([]byte, error) {
	var shapes map[string]any
	if err := yaml.Unmarshal(definitions, &shapes); err != nil {
		return nil, fmt.Errorf("definitions.yaml: %w", err)
	}
	root, err := section(all)
	if err != nil {
		return nil, err
	}
	root["properties"].(map[string]any)["global"] = map[string]any{ //nolint:forcetypeassert // section sets it
		"type": "object", "description": "What Helm gives to the parts of a chart; not used here.",
	}
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "Values of the chart herald"
	root["definitions"] = shapes
	text, err := json.MarshalIndent(root, "", "  ")
	return append(text, '\n'), err
}

func section(all []value) (map[string]any, error) {
	properties := map[string]any{}
	for _, v := range all {
		property, err := v.property()
		if err != nil {
			return nil, fmt.Errorf("values.yaml, line %d: %s: %w", v.node.Line, v.path, err)
		}
		properties[v.name] = property
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}, nil
}

// property returns the schema of one value: derived from its default, then overridden by the keywords in its comment.
func (v *value) property() (map[string]any, error) {
	property := map[string]any{}
	switch {
	case v.schema["$ref"] != nil:
		// Draft 7 ignores keywords next to a reference.
		return map[string]any{"description": v.description, "allOf": []any{map[string]any{"$ref": v.schema["$ref"]}}}, nil
	case len(v.children) > 0:
		var err error
		if property, err = section(v.children); err != nil {
			return nil, err
		}
		if more, ok := v.schema["properties"].(map[string]any); ok {
			maps.Copy(property["properties"].(map[string]any), more) //nolint:forcetypeassert // section sets it
		}
		for keyword, is := range v.schema {
			if keyword != "properties" {
				property[keyword] = is
			}
		}
		property["description"] = v.description
		return property, nil
	case v.node.Kind == yaml.MappingNode:
		if v.schema == nil {
			return nil, fmt.Errorf("nothing says what may stand in it: add a line %s", mark)
		}
		property["type"] = "object"
	case v.node.Kind == yaml.SequenceNode:
		if v.schema["items"] == nil {
			return nil, fmt.Errorf("nothing says what its items are: add a line %s", mark)
		}
		property["type"] = "array"
	case v.node.Kind == yaml.ScalarNode:
		kinds := map[string]string{"!!bool": "boolean", "!!int": "integer", "!!float": "number", "!!str": "string"}
		property["type"] = kinds[v.node.ShortTag()]
	}
	maps.Copy(property, v.schema)
	property["description"] = v.description
	return property, nil
}
