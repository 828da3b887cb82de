// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// openAPI is a document with a single kind that has the oddities of Kubernetes' real documents.
const openAPI = `{"definitions": {
	"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {
		"name": {"type": "string"}, "labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
	"io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
	"example.Extension": {"type": "object", "description": "anything"},
	"example.Pod": {
		"type": "object", "required": ["port"],
		"properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"},
			"metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
			"port": {"type": "string", "format": "int-or-string"},
			"memory": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"},
			"extension": {"$ref": "#/definitions/example.Extension"},
			"description": {"type": "boolean"},
			"containers": {"type": "array", "items": {"type": "object", "properties": {"image": {"type": "string"}}}}
		},
		"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]
	},
	"example.Options": {"type": "object", "x-kubernetes-group-version-kind": [
		{"group": "", "version": "v1", "kind": "Options"}, {"group": "apps", "version": "v1", "kind": "Options"}]}
}}`

const definition = `
kind: CustomResourceDefinition
spec:
  group: social.example.com
  names: {kind: Note}
  versions:
  - name: v1alpha1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            properties:
              color: {type: string, enum: [red]}
              shade: {type: string, nullable: true}
              size: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
              a: {type: integer}
              b: {type: integer}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: integer}}}
            anyOf: [{properties: {a: {minimum: 1}}, required: [a]}, {required: [b]}]
`

func TestSchemas(t *testing.T) {
	folder := t.TempDir()
	s := schemas{folder: filepath.Join(folder, "v1.0.0")}
	if err := s.fromOpenAPI([]byte(openAPI)); err != nil {
		t.Fatal(err)
	}
	if err := s.fromDefinition([]byte(definition)); err != nil {
		t.Fatal(err)
	}
	const pod, note = "apiVersion: v1\nkind: Pod\nport: 1\n", "apiVersion: social.example.com/v1alpha1\nkind: Note\n"
	for _, row := range []struct{ manifest, wrong, reason string }{
		{pod, "", "the required fields"},
		{"apiVersion: v1\nkind: Pod\nport: http", "", "int-or-string accepts a name"},
		{pod + "metadata: {name: a, labels: {b: c}}", "", "label names are free"},
		{pod + "memory: 128Mi", "", "a quantity as text"},
		{pod + "memory: 1", "", "a quantity as a number"},
		{pod + "extension: {a: {b: 1}}", "", "an object without declared fields accepts any"},
		{pod + "description: true", "", "a field called description is not a description"},
		{pod + "containers: [{image: a}]", "", "a list of objects"},
		{"apiVersion: v1\nkind: Pod", "port", "a required field is missing"},
		{pod + "colour: red", "colour", "an unknown field"},
		{pod + "metadata: {name: a, nam: b}", "nam", "an unknown field in metadata"},
		{pod + "containers: [{imag: a}]", "imag", "an unknown field in a list"},
		{pod + "containers: {image: a}", "containers", "an object instead of a list"},
		{pod + "description: many", "description", "a wrong type"},
		{pod + "port: 2", "already set", "a duplicate field, which YAML parsers accept"},
		{"apiVersion: v2\nkind: Pod\nport: 1", "could not find schema", "an unknown version"},
		{"apiVersion: v1\nkind: Options", "could not find schema", "options of a request are not a resource"},
		{note + "spec: {color: red, size: 1, a: 1}", "", "a custom resource"},
		{note + "spec: {shade: null, b: 1}", "", "null in a nullable field"},
		{note + "spec: {a: 1, free: {other: 1}}", "", "unknown fields where the definition preserves them"},
		{note + "spec: {a: 1, color: blue}", "color", "a value outside the enumeration"},
		{note + "spec: {a: 1, colour: red}", "colour", "an unknown field of a custom resource"},
		{note + "spec: {color: red}", "missing property", "neither of two alternative fields"},
		{note + "metadata: {nam: a}\nspec: {a: 1}", "nam", "a custom resource's metadata, which its definition does not describe"},
	} {
		_, err := conforms(folder, "1.0.0", []rendering{{name: "test", text: []byte(row.manifest)}})
		if row.wrong == "" && err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
		if row.wrong != "" && (err == nil || !strings.Contains(err.Error(), row.wrong)) {
			t.Errorf("%s: got %v, want an error with %q", row.reason, err, row.wrong)
		}
	}
}

func TestEmptyInputFails(t *testing.T) {
	if _, err := conforms(t.TempDir(), "1.0.0", []rendering{{name: "empty", text: []byte("---\n# Nothing.\n")}}); err == nil {
		t.Error("an empty rendering conforms")
	}
}
