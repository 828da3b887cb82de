// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"sigs.k8s.io/yaml"
)

// contract is the content of testdata/contract.yaml: the contract's tables as data.
type contract struct {
	// Enums holds the values of each enumeration.
	Enums map[string][]string
	// Schemas describe each field of each object: "string required", "array of X", "string date-time nullable", with the
	// contract's bounds and defaults.
	Schemas map[string]map[string]string
	// Bounds are this service's own limits, by schema and field, each with its reason.
	Bounds map[string]map[string]bound
	// Prose holds the fields whose default is only in the description, because sending the value has an effect.
	Prose []string
	// Operations describe each call: its path, its responses, and its parameters.
	Operations map[string]operation
}

type bound struct{ Is, Why string }

type operation struct {
	Call       string
	Codes      []string
	Parameters map[string]string
	// Added are responses that the contract does not name, each with its reason.
	Added map[string]string
}

func load(t *testing.T) (*contract, *openapi3.T) {
	t.Helper()
	data, err := os.ReadFile("testdata/contract.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c contract
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		t.Fatal(err)
	}
	document, err := openapi3.NewLoader().LoadFromData(YAML())
	if err != nil {
		t.Fatal(err)
	}
	return &c, document
}

// schemaOf returns a schema by name. A missing schema is returned empty, so its missing fields are also reported.
func schemaOf(t *testing.T, document *openapi3.T, name string) *openapi3.Schema {
	t.Helper()
	if found := document.Components.Schemas[name]; found != nil {
		return found.Value
	}
	t.Errorf("the document has no schema %s", name)
	return &openapi3.Schema{}
}

func TestEnumerations(t *testing.T) {
	c, document := load(t)
	for name, values := range c.Enums {
		var got []string
		for _, v := range schemaOf(t, document, name).Enum {
			got = append(got, fmt.Sprint(v))
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(values))) {
			t.Errorf("%s is %v, the contract has %v", name, got, values)
		}
	}
}

func TestSchemas(t *testing.T) {
	c, document := load(t)
	for name, fields := range c.Schemas {
		schema := schemaOf(t, document, name)
		for field, want := range fields {
			property := schema.Properties[field]
			if property == nil {
				t.Errorf("%s has no field %s", name, field)
				continue
			}
			if own, ok := c.Bounds[name][field]; ok {
				if own.Why == "" {
					t.Errorf("%s.%s: a bound of our own needs its reason", name, field)
				}
				want += " " + own.Is
			}
			if got := signature(property, slices.Contains(schema.Required, field)); got != words(want) {
				t.Errorf("%s.%s is %q, the contract has %q", name, field, got, words(want))
			}
		}
		for field := range schema.Properties {
			if _, ok := fields[field]; !ok {
				t.Errorf("%s has the field %s, which is not in the contract", name, field)
			}
		}
	}
	for _, name := range c.Prose {
		schema, field, _ := strings.Cut(name, ".")
		if description := schemaOf(t, document, schema).Properties[field].Value.Description; !strings.Contains(description, "Omitted, it is") {
			t.Errorf("%s does not describe its default: %q", name, description)
		}
	}
}

// words sorts the words of a signature.
func words(s string) string {
	all := strings.Fields(s)
	slices.Sort(all)
	return strings.Join(all, " ")
}

// signature describes a field like the contract's tables.
func signature(ref *openapi3.SchemaRef, required bool) string {
	s := ref.Value
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case ref.Ref == "#/components/schemas/Timestamp":
		add("string date-time")
	case ref.Ref != "":
		add("%s", strings.TrimPrefix(ref.Ref, "#/components/schemas/"))
	case len(s.AllOf) == 1:
		add("%s", strings.TrimPrefix(s.AllOf[0].Ref, "#/components/schemas/"))
	case s.Type.Is("array"):
		add("array of %s", signature(s.Items, false))
	default:
		add("%s", strings.Join(s.Type.Slice(), "|"))
		if s.Format != "" && s.Format != "int64" {
			add("%s", s.Format)
		}
		if len(s.Enum) > 0 {
			add("%v", s.Enum)
		}
	}
	if ref.Ref == "" {
		bounds := map[string]any{"minLength": s.MinLength, "minItems": s.MinItems}
		for name, n := range bounds {
			if n.(uint64) > 0 {
				add("%s=%d", name, n)
			}
		}
		if s.MaxLength != nil {
			add("maxLength=%d", *s.MaxLength)
		}
		if s.MaxItems != nil {
			add("maxItems=%d", *s.MaxItems)
		}
		if s.Min != nil {
			add("minimum=%v", *s.Min)
		}
		if s.Max != nil {
			add("maximum=%.0f", *s.Max)
		}
		if s.Nullable {
			add("nullable")
		}
		if s.Default != nil {
			add("default=%v", s.Default)
		}
	}
	if required {
		add("required")
	}
	return words(strings.Join(out, " "))
}

func TestOperations(t *testing.T) {
	c, document := load(t)
	found := map[string]bool{}
	for path, item := range document.Paths.Map() {
		for method, op := range item.Operations() {
			want, ok := c.Operations[op.OperationID]
			found[op.OperationID] = true
			if !ok || want.Call != method+" "+path {
				t.Errorf("%s is %s %s, the contract has %q", op.OperationID, method, path, want.Call)
				continue
			}
			var codes []string
			for code := range op.Responses.Map() {
				if _, added := want.Added[code]; !added {
					codes = append(codes, code)
				}
			}
			slices.Sort(codes)
			if !slices.Equal(codes, want.Codes) {
				t.Errorf("%s returns %v besides additions, the contract has %v", op.OperationID, codes, want.Codes)
			}
			parameters := map[string]string{}
			for _, p := range slices.Concat(item.Parameters, op.Parameters) {
				parameters[p.Value.Name] = signature(p.Value.Schema, p.Value.Required)
			}
			for name, want := range want.Parameters {
				if parameters[name] != words(want) {
					t.Errorf("%s: the parameter %s is %q, the contract has %q", op.OperationID, name, parameters[name], want)
				}
				delete(parameters, name)
			}
			delete(parameters, "Idempotency-Key") // an extension
			if len(parameters) > 0 {
				t.Errorf("%s has parameters that are not in the contract: %v", op.OperationID, parameters)
			}
		}
	}
	for id := range c.Operations {
		if !found[id] {
			t.Errorf("the document has no operation %s", id)
		}
	}
}
