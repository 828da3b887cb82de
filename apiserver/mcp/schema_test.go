// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
)

// inBoth runs a test with each version's tools, as a client receives them.
func inBoth(t *testing.T, test func(t *testing.T, of *edition, all map[string]*toolJSON)) {
	t.Helper()
	for name, of := range map[string]*edition{"V1": &v1, "V2": &v2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.v2 = of == &v2
			test(t, of, listed(t, w))
		})
	}
}

// listed returns the tools as a client receives them.
func listed(t *testing.T, w *world) map[string]*toolJSON {
	t.Helper()
	r := send(t, "POST", w.serve(t), "key", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var answer struct {
		Result struct {
			Tools []*toolJSON `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.status != 200 {
		t.Fatalf("got %d %s", r.status, r.body)
	}
	all := map[string]*toolJSON{}
	for _, tool := range answer.Result.Tools {
		all[tool.Name] = tool
	}
	return all
}

type toolJSON struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  schema          `json:"inputSchema"`
	OutputSchema schema          `json:"outputSchema"`
	Annotations  map[string]bool `json:"annotations"`
}

// TestToolsMatchOperations lists the tools with a client of an older revision, without initialize.
func TestToolsMatchOperations(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, of *edition, all map[string]*toolJSON) {
		want := []string{"cancel_post", "create_media_upload_url", "create_post", "get_post", "list_connections", "list_posts"}
		if of == &v2 {
			want = append(want, "create_schedule", "delete_schedule", "get_schedule", "list_schedules", "retry_post", "update_post", "update_schedule", "validate_post",
				"create_notifier", "delete_notifier", "get_notifier", "list_deliveries", "list_notifiers", "replace_secret", "resend_delivery", "update_notifier")
			slices.Sort(want)
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(all))); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRootsOfSchemas verifies the schemas' roots: models' APIs reject a choice at the root, and clients require output
// schemas to be objects.
func TestRootsOfSchemas(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, _ *edition, all map[string]*toolJSON) {
		for name, tool := range all {
			for which, of := range map[string]schema{"input": tool.InputSchema, "output": tool.OutputSchema} {
				if of["type"] != "object" {
					t.Errorf("the %s schema of %s is of type %v", which, name, of["type"])
				}
				for _, word := range []string{"oneOf", "anyOf", "allOf", "not", "enum", "$ref", "if"} {
					if _, has := of[word]; has {
						t.Errorf("the %s schema of %s has %s at its root", which, name, word)
					}
				}
				everywhere(of, func(path string, s schema) {
					for _, word := range []string{"$ref", "nullable", "discriminator", "example", "allOf", "oneOf"} {
						if _, has := s[word]; has && !strings.HasSuffix(path, "properties") {
							t.Errorf("the %s schema of %s has %s at %s", which, name, word, path)
						}
					}
					if _, list := s["type"].([]any); list {
						t.Errorf("the %s schema of %s has a list of types at %s", which, name, path)
					}
				})
			}
			if tool.Description == "" || tool.Title == "" {
				t.Errorf("the description of %s is too short", name)
			}
			for field := range asSchema(tool.InputSchema["properties"]) {
				if text, _ := asSchema(asSchema(tool.InputSchema["properties"])[field])["description"].(string); text == "" {
					t.Errorf("%s lacks a description of its field %s", name, field)
				}
			}
		}
	})
}

// everywhere visits a schema and all schemas in it.
func everywhere(of schema, visit func(path string, s schema)) {
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case schema:
			visit(path, v)
			for key, inner := range v {
				walk(path+"/"+key, inner)
			}
		case []any:
			for _, inner := range v {
				walk(path+"/-", inner)
			}
		}
	}
	walk("", of)
}

// TestSchemasMatchREST compares the schemas, which are derived from the OpenAPI document, with another parser's
// view of it: they have the same names, values, limits and required fields.
func TestSchemasMatchREST(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, e *edition, all map[string]*toolJSON) {
		document, err := openapi3.NewLoader().LoadFromData(e.document(capabilities))
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range document.Paths.Map() {
			for _, operation := range item.Operations() {
				var of *toolJSON
				for i := range e.tools {
					if e.tools[i].operation == operation.OperationID {
						of = all[e.tools[i].name]
					}
				}
				if of == nil {
					t.Errorf("%s is no tool", operation.OperationID)
					continue
				}
				want, needed := map[string]*openapi3.Schema{}, []any{}
				for _, p := range append(slices.Clone(item.Parameters), operation.Parameters...) {
					if p.Value.Name == ifMatch {
						want[argumentVersion], needed = p.Value.Schema.Value, append(needed, argumentVersion)
					}
					if p.Value.In == "header" {
						continue
					}
					want[p.Value.Name] = p.Value.Schema.Value
					if p.Value.Required {
						needed = append(needed, p.Value.Name)
					}
				}
				if operation.RequestBody != nil {
					body := operation.RequestBody.Value.Content.Get("application/json").Schema.Value
					shapes := body.OneOf
					if len(shapes) == 0 {
						shapes = openapi3.SchemaRefs{{Value: body}}
					}
					counts := map[string]int{}
					for _, shape := range shapes {
						for name, property := range shape.Value.Properties {
							if old := want[name]; old == nil || name == "targets" && len(property.Value.Items.Value.Properties) > len(old.Items.Value.Properties) {
								want[name] = property.Value
							}
						}
						for _, name := range shape.Value.Required {
							counts[name]++
							if counts[name] == len(shapes) {
								needed = append(needed, name)
							}
						}
					}
				}
				got := asSchema(of.InputSchema["properties"])
				for name, property := range want {
					sameSchema(t, of.Name+"."+name, property, asSchema(got[name]))
				}
				if len(got) != len(want) {
					t.Errorf("%s has %d fields, REST %d", of.Name, len(got), len(want))
				}
				slices.SortFunc(needed, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
				has, _ := of.InputSchema["required"].([]any)
				if diff := cmp.Diff(needed, append([]any{}, has...)); diff != "" {
					t.Errorf("%s needs:\n%s", of.Name, diff)
				}
				for status, response := range operation.Responses.Map() {
					if strings.HasPrefix(status, "2") {
						body := response.Value.Content.Get("application/json").Schema.Value
						answers := asSchema(of.OutputSchema["properties"])
						for name, property := range body.Properties {
							sameSchema(t, of.Name+" -> "+name, property.Value, asSchema(answers[name]))
						}
						if asSchema(answers["error"])["type"] != "object" || len(answers) != len(body.Properties)+1 {
							t.Errorf("%s returns %v", of.Name, answers)
						}
					}
				}
			}
		}
	})
}

// sameSchema compares a tool's field with REST's.
func sameSchema(t *testing.T, at string, rest *openapi3.Schema, tool schema) {
	t.Helper()
	if len(rest.AllOf) == 1 {
		rest = rest.AllOf[0].Value
	}
	if tool == nil {
		t.Errorf("%s: the tool lacks the property", at)
		return
	}
	nullable := rest.Nullable || rest.Type.Includes("null") // in OpenAPI 3.0 and 3.1
	if either, ok := tool["anyOf"].([]any); ok != nullable {
		t.Errorf("%s: REST accepts null: %t, the tool: %t", at, nullable, ok)
	} else if ok {
		tool = asSchema(either[0])
	}
	number := func(name string) float64 { n, _ := tool[name].(float64); return n }
	deref := func(p *float64) float64 {
		if p == nil {
			return 0
		}
		return *p
	}
	most := func(p *uint64) float64 {
		if p == nil {
			return 0
		}
		return float64(*p)
	}
	if tool["type"] != (*rest.Type)[0] {
		t.Errorf("%s: %v, REST has %v", at, tool["type"], *rest.Type)
	}
	if !strings.HasSuffix(at, ".category") { // it has a value for each shape
		values, _ := tool["enum"].([]any)
		if diff := cmp.Diff(append([]any{}, rest.Enum...), append([]any{}, values...)); diff != "" {
			t.Errorf("%s: %s", at, diff)
		}
	} else if values, _ := tool["enum"].([]any); strings.Contains(at, "create_post.") && len(values) != 4 {
		t.Errorf("%s: %v", at, values)
	}
	got := []float64{number("minimum"), number("maximum"), number("minLength"), number("maxLength"), number("minItems"), number("maxItems")}
	want := []float64{deref(rest.Min), deref(rest.Max), float64(rest.MinLength), most(rest.MaxLength), float64(rest.MinItems), most(rest.MaxItems)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: limits:\n%s", at, diff)
	}
	if rest.Items != nil {
		sameSchema(t, at+"[]", rest.Items.Value, asSchema(tool["items"]))
	}
	properties := asSchema(tool["properties"])
	if len(properties) != len(rest.Properties) {
		t.Errorf("%s: has %d fields, REST %d", at, len(properties), len(rest.Properties))
	}
	for name, property := range rest.Properties {
		sameSchema(t, at+"."+name, property.Value, asSchema(properties[name]))
	}
	required, _ := tool["required"].([]any)
	if len(required) != len(rest.Required) {
		t.Errorf("%s: needs %v, REST %v", at, required, rest.Required)
	}
}

// TestAnnotations verifies the tools' hints, which clients use to decide whether to ask for confirmation.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		reason                                     string
		readOnly, idempotent, destructive, outside bool
	}{
		"list_connections":        {"the tool only reads", true, true, false, false},
		"list_posts":              {"the tool only reads", true, true, false, false},
		"get_post":                {"the tool only reads", true, true, false, false},
		"create_media_upload_url": {"each call creates another URL and no public object", false, false, false, false},
		"create_post":             {"each call creates a post, visible to the public", false, false, false, true},
		"cancel_post":             {"the tool is destructive and idempotent", false, true, true, false},
	} {
		got := listed(t, newWorld())[name].Annotations
		if diff := cmp.Diff(map[string]bool{
			"readOnlyHint": want.readOnly, "idempotentHint": want.idempotent, "destructiveHint": want.destructive, "openWorldHint": want.outside,
		}, got); diff != "" {
			t.Errorf("%s: %s:\n%s", name, want.reason, diff)
		}
	}
}
