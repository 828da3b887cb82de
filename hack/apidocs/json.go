// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// toJSON formats an example as JSON, with its fields in the document's order. The caller escapes the result.
func toJSON(node *yaml.Node) (string, error) {
	var compact, out bytes.Buffer
	if err := writeJSON(&compact, node); err != nil {
		return "", err
	}
	if err := json.Indent(&out, compact.Bytes(), "", "  "); err != nil {
		return "", err
	}
	return out.String(), nil
}

func writeJSON(out *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		return writeContainer(out, node)
	case yaml.ScalarNode:
		var value any
		if err := node.Decode(&value); err != nil {
			return err
		}
		if node.Tag == "!!timestamp" {
			value = node.Value
		}
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	case yaml.DocumentNode, yaml.AliasNode:
		return fmt.Errorf("line %d: an example must be written out", node.Line)
	default:
		return fmt.Errorf("line %d: an example must be written out", node.Line)
	}
}

func writeContainer(out *bytes.Buffer, node *yaml.Node) error {
	ends, perItem := "[]", 1
	if node.Kind == yaml.MappingNode {
		ends, perItem = "{}", 2
	}
	out.WriteByte(ends[0])
	for i, part := range node.Content {
		switch {
		case i%perItem == 1:
			out.WriteByte(':')
		case i > 0:
			out.WriteByte(',')
		}
		if err := writeJSON(out, part); err != nil {
			return err
		}
	}
	out.WriteByte(ends[1])
	return nil
}
