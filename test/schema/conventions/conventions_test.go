// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conventions_test checks the CRDs against the Kubernetes API conventions, and against this project's
// requirements for every kind.
package conventions_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/test/must"
)

func definitions(tb testing.TB) []*apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "config", "crd", "bases", "*.yaml"))
	must.Succeed(tb, err)
	if len(files) != 9 {
		tb.Fatalf("found the definitions %q, want nine kinds", files)
	}
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := os.ReadFile(file)
		must.Succeed(tb, err)
		crd := new(apiextensionsv1.CustomResourceDefinition)
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		list = append(list, crd)
	}
	return list
}

func TestKinds(t *testing.T) {
	shortNames := map[string]string{}
	for _, crd := range definitions(t) {
		kind, version := crd.Spec.Names.Kind, crd.Spec.Versions[0]
		status := version.Schema.OpenAPIV3Schema.Properties["status"]
		if version.Subresources == nil || version.Subresources.Status == nil {
			t.Errorf("%s: status is not a subresource, so users with write access to the spec could change it", kind)
		}
		for _, want := range []string{"conditions", "observedGeneration"} {
			if _, ok := status.Properties[want]; !ok && kind != "Usage" && kind != "OAuthGrant" { // no tool applies these
				t.Errorf("%s: without status.%s, GitOps tools cannot determine readiness", kind, want)
			}
		}
		if !slices.Contains(crd.Spec.Names.Categories, "herald") {
			t.Errorf("%s: `kubectl get herald` would not show it", kind)
		}
		for _, name := range crd.Spec.Names.ShortNames {
			if !strings.HasPrefix(name, "h") || shortNames[name] != "" {
				t.Errorf("%s: the short name %q belongs to another API (%s)", kind, name, shortNames[name])
			}
			shortNames[name] = kind
		}
		if columns := version.AdditionalPrinterColumns; len(crd.Spec.Names.ShortNames) == 0 || len(columns) == 0 || columns[len(columns)-1].Name != "Age" {
			t.Errorf("%s: wants a short name, and columns that end in the age", kind)
		}
	}
}

func TestFields(t *testing.T) {
	for _, crd := range definitions(t) {
		properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
		for _, part := range []string{"spec", "status"} {
			walk(part, properties[part], func(path string, s apiextensionsv1.JSONSchemaProps) {
				for _, problem := range problems(path, s) {
					t.Errorf("%s %s: %s", crd.Spec.Names.Kind, path, problem)
				}
			})
		}
	}
}

// walk visits a field and all fields inside it. The path of a list's items is the list's path followed by "[]".
func walk(path string, s apiextensionsv1.JSONSchemaProps, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	visit(path, s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		walk(path+"."+name, s.Properties[name], visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(path+"[]", *s.Items.Schema, visit)
	}
}

// problems returns the problems of one field, not of the fields inside it.
func problems(path string, s apiextensionsv1.JSONSchemaProps) []string {
	var found []string
	say := func(wrong bool, what string) {
		if wrong {
			found = append(found, what)
		}
	}
	name := path[strings.LastIndex(path, ".")+1:]
	inList := strings.HasSuffix(name, "[]")
	say(!inList && !strings.HasPrefix(s.Description, name+" "),
		"`kubectl explain` should read: "+name+" …")
	say(s.Nullable, "null and absence should mean the same")
	if s.XIntOrString { // a quantity
		say(s.MaxLength == nil || len(s.XValidations) == 0, "needs a greatest length as a text, and bounds as a number")
		return found
	}
	switch s.Type {
	case "string":
		say(s.MaxLength == nil && len(s.Enum) == 0 && !strings.HasSuffix(path, ".lastTransitionTime"),
			"needs a maximum length: unbounded values fill etcd and the budget of the rules")
	case "integer":
		say(s.Format != "int32" && s.Format != "int64", "needs a format")
		say(s.Minimum == nil, "needs a least value")
	case "array":
		say(s.MaxItems == nil, "needs a greatest number of items")
		say(s.XListType == nil, "needs a listType: without it an apply replaces the list, whoever owns its items")
	case "object":
		say(len(s.Properties) == 0 || s.AdditionalProperties != nil, "a schema cannot check a map: use a list with a key")
	case "boolean":
	default:
		found = append(found, "has the type "+s.Type+"; numbers with a fraction are not the same everywhere")
	}
	return found
}
