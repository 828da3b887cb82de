// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi holds the description of the HTTP API. It is written by hand;
// tests hold apiserver/rest and apiserver/wire to it.
package openapi

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed openapi.yaml
var document []byte

// YAML returns the OpenAPI 3.0.3 document as it was written.
func YAML() []byte { return document }

// JSON returns the same document as JSON.
func JSON() ([]byte, error) {
	out, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("convert openapi.yaml to JSON: %w", err)
	}
	return out, nil
}
