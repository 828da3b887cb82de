// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi contains the HTTP API's OpenAPI document, and the page that describes it. The document is
// handwritten; tests compare apiserver/rest and apiserver/wire with it.
package openapi

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed openapi.yaml
var document []byte

// YAML returns the OpenAPI 3.0.3 document.
func YAML() []byte { return document }

// JSON returns the document as JSON.
func JSON() ([]byte, error) {
	out, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("convert openapi.yaml to JSON: %w", err)
	}
	return out, nil
}
