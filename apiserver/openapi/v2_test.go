// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestVersion2ContainsVersion1 verifies that a client of version 1 can move to version 2: it has every operation,
// parameter, response, field and value, with the same bounds.
func TestVersion2ContainsVersion1(t *testing.T) {
	t.Parallel()
	documents := [2]*openapi3.T{}
	for i, text := range [][]byte{YAML(), YAMLV2()} {
		document, err := openapi3.NewLoader().LoadFromData(text)
		if err != nil {
			t.Fatal(err)
		}
		documents[i] = document
	}
	before, now := documents[0], documents[1]
	if err := now.Validate(t.Context()); err != nil || now.OpenAPI != "3.1.0" || now.Servers[0].URL != "/api/v2" {
		t.Errorf("%s at %s: %v", now.OpenAPI, now.Servers[0].URL, err)
	}
	for name, schema := range before.Components.Schemas {
		if other := now.Components.Schemas[name]; other == nil {
			t.Errorf("schema %s is missing", name)
		} else {
			contains(t, name, other.Value, schema.Value)
		}
	}
	for path, item := range before.Paths.Map() {
		for method, operation := range item.Operations() {
			other := now.Paths.Value(path).Operations()[method]
			if other == nil {
				t.Errorf("%s %s is missing", method, path)
				continue
			}
			for _, p := range operation.Parameters {
				if other.Parameters.GetByInAndName(p.Value.In, p.Value.Name) == nil {
					t.Errorf("%s has no parameter %s", other.OperationID, p.Value.Name)
				}
			}
			for status := range operation.Responses.Map() {
				if other.Responses.Value(status) == nil {
					t.Errorf("%s lacks the response %s", other.OperationID, status)
				}
			}
		}
	}
}

// contains reports everything in a schema of version 1 that the schema of version 2 lacks.
func contains(t *testing.T, name string, now, before *openapi3.Schema) {
	t.Helper()
	for _, value := range before.Enum {
		if !slices.Contains(now.Enum, value) {
			t.Errorf("%s has no value %v", name, value)
		}
	}
	for field, property := range before.Properties {
		other := now.Properties[field]
		if other == nil {
			t.Errorf("%s has no field %s", name, field)
			continue
		}
		required := slices.Contains(before.Required, field)
		if is := slices.Contains(now.Required, field); is != required {
			t.Errorf("%s.%s: required is %t", name, field, is)
		}
		if got, want := in30(signature(other, required)), signature(property, required); got != words(want) {
			t.Errorf("%s.%s is %q, version 1 has %q", name, field, got, want)
		}
	}
}

// in30 describes a field of OpenAPI 3.1 as of 3.0.
func in30(signature string) string {
	for word := range strings.FieldsSeq(signature) {
		if name, nullable := strings.CutSuffix(word, "|null"); nullable {
			return words(strings.Replace(signature, word, name+" nullable", 1))
		}
	}
	return words(signature)
}
