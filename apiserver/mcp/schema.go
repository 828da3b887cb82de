// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/herald-social/herald/apiserver/openapi"
)

// schema is a JSON Schema, or part of the OpenAPI document.
type schema = map[string]any

// description is the OpenAPI document. The tools' schemas are derived from it: tools and REST have the same inputs and
// outputs, defined once.
type description struct {
	edition    *edition
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type described struct {
	OperationID string      `json:"operationId"`
	Parameters  []parameter `json:"parameters"`
	RequestBody struct {
		Content content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content content `json:"content"`
	} `json:"responses"`
}

type parameter struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Schema      schema `json:"schema"`
}

type content map[string]struct {
	Schema schema `json:"schema"`
}

func (c content) schema() schema { return c["application/json"].Schema }

type schemas struct{ input, output schema }

// schemas returns every operation's schemas by operationId.
func (e *edition) schemas(capabilities openapi.Capabilities) (map[string]schemas, error) {
	text, err := openapi.JSON(e.document(capabilities))
	if err != nil {
		return nil, err
	}
	d := description{edition: e}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read the description of the REST API: %w", err)
	}
	found := map[string]schemas{}
	for _, path := range d.Paths {
		var shared []parameter
		if err := unmarshal(path["parameters"], &shared); err != nil {
			return nil, err
		}
		for method, raw := range path {
			if method == "parameters" {
				continue
			}
			var o described
			if err := unmarshal(raw, &o); err != nil {
				return nil, err
			}
			o.Parameters = append(o.Parameters, shared...)
			found[o.OperationID] = schemas{d.input(&o), d.output(&o)}
		}
	}
	return found, nil
}

func unmarshal(raw json.RawMessage, into any) error {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the description of the REST API: %w", err)
	}
	return nil
}

// input merges the path and query parameters with the body's fields. A body with several shapes (oneOf) becomes one
// object with all their fields: a choice at the root of a tool's schema is valid, but the APIs of most models reject or
// drop such a tool.
func (d *description) input(o *described) schema {
	properties, required := schema{}, []string{}
	for i := range o.Parameters {
		p := &o.Parameters[i]
		if p.Name == ifMatch { // a tool has no headers; the version is the content of the ETag
			of := d.plain(p.Schema)
			of["description"] = versionNote
			properties[argumentVersion], required = of, append(required, argumentVersion)
		}
		if p.In != "path" && p.In != "query" {
			continue
		}
		of := d.plain(p.Schema)
		of["description"] = d.edition.words(p.Description)
		properties[p.Name] = of
		if p.Required {
			required = append(required, p.Name)
		}
	}
	body := d.resolve(o.RequestBody.Content.schema())
	shapes, _ := body["oneOf"].([]any)
	if shapes == nil && body != nil {
		shapes = []any{body}
	}
	for i, shape := range shapes {
		of := d.resolve(asSchema(shape))
		needs := stringsOf(of["required"])
		if i == 0 {
			required = append(required, needs...)
		}
		// A field is required only if all shapes that have it require it.
		required = slices.DeleteFunc(required, func(name string) bool {
			_, has := asSchema(of["properties"])[name]
			return has && !slices.Contains(needs, name) || !has && i > 0
		})
		for name, property := range asSchema(of["properties"]) {
			properties[name] = merged(asSchema(properties[name]), d.plain(asSchema(property)))
		}
	}
	slices.Sort(required)
	out := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// merged combines the schemas of a field that several shapes have. They differ in their enum values, such as the
// category, and in their items: the items with more fields cover both.
func merged(a, b schema) schema {
	if a == nil {
		return b
	}
	one, another := stringsOf(a["enum"]), stringsOf(b["enum"])
	if one != nil && another != nil {
		for _, value := range another {
			if !slices.Contains(one, value) {
				one = append(one, value)
			}
		}
		a["enum"] = one
	}
	if fieldsOf(b) > fieldsOf(a) {
		a["items"], a["description"] = b["items"], b["description"]
	}
	return a
}

func fieldsOf(list schema) int { return len(asSchema(asSchema(list["items"])["properties"])) }

// output returns a schema with the fields of the response and those of an error; a result has one set or the other.
// Clients that validate results against the schema also validate errors.
func (d *description) output(o *described) schema {
	properties := schema{"error": d.plain(d.Components.Schemas["ErrorBody"])}
	for status, response := range o.Responses {
		if strings.HasPrefix(status, "2") {
			maps.Copy(properties, asSchema(d.plain(response.Content.schema())["properties"]))
		}
	}
	return schema{"type": "object", "properties": properties}
}

// plain converts an OpenAPI schema to plain JSON Schema: it resolves references, converts nullable and a list of a type
// and null to a choice, and drops OpenAPI's own keywords.
func (d *description) plain(of schema) schema {
	of = withNullable(d.resolve(of))
	out := schema{}
	for key, value := range of {
		switch key {
		case "nullable", "example", "examples", "discriminator", "allOf":
		case "default":
			if value != nil {
				out[key] = value
			}
		case "format":
			if value == "date-time" {
				out[key] = value
			}
		case "description":
			text, _ := value.(string)
			out[key] = d.edition.words(text)
		case "properties":
			properties := schema{}
			for name, property := range asSchema(value) {
				properties[name] = d.plain(asSchema(property))
			}
			out[key] = properties
		case "items":
			out[key] = d.plain(asSchema(value))
		default:
			out[key] = value
		}
	}
	if of["nullable"] != true {
		return out
	}
	either := schema{}
	for _, beside := range []string{"description", "default"} {
		if value, has := out[beside]; has {
			either[beside] = value
			delete(out, beside)
		}
	}
	either["anyOf"] = []any{out, schema{"type": "null"}}
	return either
}

// withNullable returns a schema of OpenAPI 3.1 with one type, and nullable as in 3.0 if null is its other type.
func withNullable(of schema) schema {
	types := stringsOf(of["type"])
	if len(types) != 2 || types[1] != "null" {
		return of
	}
	out := maps.Clone(of)
	out["type"], out["nullable"] = types[0], true
	return out
}

// resolve follows a reference. Fields next to an allOf override those of its target.
func (d *description) resolve(of schema) schema {
	if all, ok := of["allOf"].([]any); ok && len(all) == 1 {
		out := maps.Clone(d.resolve(asSchema(all[0])))
		maps.Copy(out, of)
		delete(out, "allOf")
		return out
	}
	if name, ok := of["$ref"].(string); ok {
		return d.resolve(d.Components.Schemas[strings.TrimPrefix(name, "#/components/schemas/")])
	}
	return of
}

func asSchema(value any) schema {
	s, _ := value.(schema)
	return s
}

func stringsOf(value any) []string {
	switch list := value.(type) {
	case []string:
		return list
	case []any:
		out := make([]string, 0, len(list))
		for _, item := range list {
			if text, ok := item.(string); ok {
				out = append(out, text)
			}
		}
		return out
	}
	return nil
}

// words joins the lines of each paragraph of a description, and replaces operation names with tool names.
func (e *edition) words(text string) string {
	for i := range e.tools {
		text = strings.ReplaceAll(text, "`"+e.tools[i].operation+"`", "`"+e.tools[i].name+"`")
	}
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, paragraph := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(paragraph), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}
