// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document contains what the page shows of an OpenAPI 3.0 or 3.1 document, in the document's order.
type document struct {
	Info struct {
		Title       string `yaml:"title"`
		Version     string `yaml:"version"`
		Description string `yaml:"description"`
		License     struct {
			Name string `yaml:"name"`
			URL  string `yaml:"url"`
		} `yaml:"license"`
	} `yaml:"info"`
	Servers []struct {
		URL string `yaml:"url"`
	} `yaml:"servers"`
	Tags []struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	} `yaml:"tags"`
	Paths      ordered[pathItem] `yaml:"paths"`
	Components struct {
		Parameters ordered[parameter] `yaml:"parameters"`
		Headers    ordered[header]    `yaml:"headers"`
		Responses  ordered[response]  `yaml:"responses"`
		Schemas    ordered[schema]    `yaml:"schemas"`
	} `yaml:"components"`
}

type pathItem struct {
	Parameters []parameter `yaml:"parameters"`
	Get        *operation  `yaml:"get"`
	Put        *operation  `yaml:"put"`
	Post       *operation  `yaml:"post"`
	Patch      *operation  `yaml:"patch"`
	Delete     *operation  `yaml:"delete"`
}

type operation struct {
	ID          string      `yaml:"operationId"`
	Tags        []string    `yaml:"tags"`
	Summary     string      `yaml:"summary"`
	Description string      `yaml:"description"`
	Parameters  []parameter `yaml:"parameters"`
	RequestBody struct {
		Content map[string]media `yaml:"content"`
	} `yaml:"requestBody"`
	Responses ordered[response] `yaml:"responses"`
}

type parameter struct {
	Ref         string `yaml:"$ref"`
	Name        string `yaml:"name"`
	In          string `yaml:"in"`
	Description string `yaml:"description"`
	Required    bool   `yaml:"required"`
	Schema      schema `yaml:"schema"`
	Example     string `yaml:"example"`
}

type header struct {
	Ref         string `yaml:"$ref"`
	Description string `yaml:"description"`
	Schema      schema `yaml:"schema"`
}

type response struct {
	Ref         string           `yaml:"$ref"`
	Description string           `yaml:"description"`
	Headers     ordered[header]  `yaml:"headers"`
	Content     map[string]media `yaml:"content"`
}

type media struct {
	Schema   schema          `yaml:"schema"`
	Example  yaml.Node       `yaml:"example"`
	Examples ordered[sample] `yaml:"examples"`
}

type sample struct {
	Summary string    `yaml:"summary"`
	Value   yaml.Node `yaml:"value"`
}

type schema struct {
	Ref           string          `yaml:"$ref"`
	Description   string          `yaml:"description"`
	Type          string          `yaml:"type"`
	Format        string          `yaml:"format"`
	Nullable      bool            `yaml:"nullable"`
	Enum          []string        `yaml:"enum"`
	Default       yaml.Node       `yaml:"default"`
	MinLength     string          `yaml:"minLength"`
	MaxLength     string          `yaml:"maxLength"`
	Minimum       string          `yaml:"minimum"`
	Maximum       string          `yaml:"maximum"`
	MinItems      string          `yaml:"minItems"`
	MaxItems      string          `yaml:"maxItems"`
	Required      []string        `yaml:"required"`
	Properties    ordered[schema] `yaml:"properties"`
	Items         *schema         `yaml:"items"`
	Discriminator struct {
		PropertyName string          `yaml:"propertyName"`
		Mapping      ordered[string] `yaml:"mapping"`
	} `yaml:"discriminator"`
}

// UnmarshalYAML decodes a schema. OpenAPI 3.1 lists null among the types; 3.0 uses nullable instead.
func (s *schema) UnmarshalYAML(node *yaml.Node) error {
	type plain schema // without this method
	nullable := false
	copied := *node
	copied.Content = slices.Clone(node.Content)
	for i := 0; i+1 < len(copied.Content); i += 2 {
		if copied.Content[i].Value != "type" || copied.Content[i+1].Kind != yaml.SequenceNode {
			continue
		}
		listed := copied.Content[i+1].Content
		types := slices.DeleteFunc(slices.Clone(listed), func(t *yaml.Node) bool { return t.Value == "null" })
		if len(types) != 1 {
			return fmt.Errorf("line %d: the page can show one type besides null", node.Line)
		}
		copied.Content[i+1], nullable = types[0], len(types) < len(listed)
	}
	err := copied.Decode((*plain)(s))
	s.Nullable = s.Nullable || nullable
	return err
}

// entry is one name and value of a map.
type entry[T any] struct {
	Name  string
	Value T
}

// ordered is a map that keeps the document's order.
type ordered[T any] []entry[T]

// UnmarshalYAML decodes a YAML mapping.
func (o *ordered[T]) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want a map", node.Line)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		e := entry[T]{Name: node.Content[i].Value}
		if err := node.Content[i+1].Decode(&e.Value); err != nil {
			return err
		}
		*o = append(*o, e)
	}
	return nil
}

// named resolves a reference.
func (o ordered[T]) named(ref string) (*T, error) {
	for i := range o {
		if o[i].Name == refName(ref) {
			return &o[i].Value, nil
		}
	}
	return nil, fmt.Errorf("the document has no %s", ref)
}

// refName returns the last segment of a reference.
func refName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }
