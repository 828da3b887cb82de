// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decode_test checks that the Go types can decode every object that the CRDs admit, because a single
// undecodable object would break every informer. The API server's own code validates the objects; no API server is
// needed.
package decode_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// definition is a CRD with the API server's validation.
type definition struct {
	schema    *schema.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
}

func load(tb testing.TB, plural string) *definition {
	tb.Helper()
	path := filepath.Join("..", "..", "..", "config", "crd", "bases", "social.herald.dev_"+plural+".yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return &definition{
		schema:    structural,
		validator: validator,
		rules:     cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// create validates a new JSON object. It returns the object as it would be stored, or the reason why it is rejected.
func (d *definition) create(ctx context.Context, data []byte) (map[string]any, error) {
	object, err := d.prepare(data)
	if err != nil {
		return nil, err
	}
	errs := validation.ValidateCustomResource(nil, object, d.validator)
	return object, d.validate(ctx, errs, object, nil)
}

// writeStatus validates a status write to an object that is stored as wire. It ignores everything else in data.
func (d *definition) writeStatus(ctx context.Context, wire, data []byte) error {
	stored, err := d.prepare(wire)
	if err != nil {
		return err
	}
	written, err := d.prepare(data)
	if err != nil {
		return err
	}
	object := maps.Clone(stored)
	delete(object, "status")
	if status, ok := written["status"]; ok {
		object["status"] = status
	}
	errs := validation.ValidateCustomResourceUpdate(nil, object, stored, d.validator)
	return d.validate(ctx, errs, object, stored)
}

// prepare decodes, prunes and defaults an object.
func (d *definition) prepare(data []byte) (map[string]any, error) {
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("not an object: %w", err)
	}
	pruning.Prune(object, d.schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.schema)
	defaulting.Default(object, d.schema)
	return object, nil
}

func (d *definition) validate(ctx context.Context, errs field.ErrorList, object, old map[string]any) error {
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.schema, object)...)
	if len(errs) > 0 {
		return errs.ToAggregate()
	}
	// A nil map in an interface is not a nil interface.
	var previous any
	if old != nil {
		previous = old
	}
	errs, _ = d.rules.Validate(ctx, nil, d.schema, object, previous, celconfig.RuntimeCELCostBudget)
	return errs.ToAggregate()
}
