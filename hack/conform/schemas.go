// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// schemas writes JSON schemas in kubeconform's format, one file per kind. They are strict: an unknown field is an
// error, although the API server would silently drop it.
type schemas struct {
	// folder is the output folder.
	folder string
}

// shared is the file with the shared definitions.
const shared = "definitions.json"

// location is kubeconform's path of a kind's schema below the folder with all versions. For the core group, Group is
// the version.
const location = "{{ .NormalizedKubernetesVersion }}/{{ .ResourceKind }}_{{ .Group }}_{{ .ResourceAPIVersion }}.json"

func file(group, version, kind string) string {
	if group == "" {
		group = version
	}
	return strings.ToLower(kind) + "_" + group + "_" + version + ".json"
}

type schema = map[string]any

// fromOpenAPI writes the kinds in an OpenAPI v2 document from the Kubernetes repository.
func (s *schemas) fromOpenAPI(document []byte) error {
	var openAPI struct {
		Definitions map[string]schema `json:"definitions"`
	}
	if err := json.Unmarshal(document, &openAPI); err != nil {
		return err
	}
	if len(openAPI.Definitions) == 0 {
		return errors.New("it has no definitions")
	}
	for name, definition := range openAPI.Definitions {
		if name == "io.k8s.apimachinery.pkg.api.resource.Quantity" {
			definition["type"] = []string{"string", "number"}
		}
		var kind struct {
			Names []struct {
				Group   string `json:"group"`
				Version string `json:"version"`
				Kind    string `json:"kind"`
			} `json:"x-kubernetes-group-version-kind"`
		}
		if err := reread(definition, &kind); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		strict(definition)
		// A schema shared by several kinds, such as DeleteOptions, is not a resource.
		if len(kind.Names) != 1 {
			continue
		}
		is := kind.Names[0]
		if err := s.write(file(is.Group, is.Version, is.Kind), schema{"$ref": shared + "#/definitions/" + name}); err != nil {
			return err
		}
	}
	return s.write(shared, schema{"definitions": openAPI.Definitions})
}

// fromDefinition writes all versions of a CustomResourceDefinition's kind.
func (s *schemas) fromDefinition(text []byte) error {
	var definition struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return err
	}
	spec := definition.Spec
	if spec.Names.Kind == "" || len(spec.Versions) == 0 {
		return errors.New("this is not a CustomResourceDefinition")
	}
	for _, version := range spec.Versions {
		root := version.Schema.OpenAPIV3Schema
		properties, ok := root["properties"].(schema)
		if !ok {
			return fmt.Errorf("the version %s has no schema", version.Name)
		}
		properties["metadata"] = schema{"$ref": shared + "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
		strict(root)
		if err := s.write(file(spec.Group, version.Name, spec.Names.Kind), root); err != nil {
			return err
		}
	}
	return nil
}

// strict converts an OpenAPI schema, in place, to a JSON schema that rejects unknown fields. Schemas in allOf, anyOf,
// oneOf and not repeat their parent's fields and are left unchanged.
func strict(s schema) {
	delete(s, "description")
	switch {
	case s["x-kubernetes-int-or-string"] == true, s["format"] == "int-or-string":
		delete(s, "format")
		s["type"] = []string{"integer", "string"}
	case s["nullable"] == true:
		s["type"] = []any{s["type"], "null"}
	}
	properties, closed := s["properties"].(schema)
	for _, property := range properties {
		if p, ok := property.(schema); ok {
			strict(p)
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if inner, ok := s[name].(schema); ok {
			strict(inner)
		}
	}
	if _, open := s["additionalProperties"]; closed && !open && s["x-kubernetes-preserve-unknown-fields"] != true {
		s["additionalProperties"] = false
	}
}

func reread(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

func (s *schemas) write(name string, content schema) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.folder, name), data, 0o600)
}
