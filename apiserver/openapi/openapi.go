// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi contains the HTTP API's OpenAPI document, and the pages that describe it. The document of
// version 1 is handwritten; tests compare apiserver/rest and apiserver/wire with it.
package openapi

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:generate go run ../../hack/apiv2 openapi.yaml openapi-v2-changes.yaml openapi-v2.yaml

var (
	//go:embed openapi.yaml
	document []byte
	//go:embed openapi-v2.yaml
	documentV2 []byte
)

// PathV2 is the path of version 2's document, without the extension .yaml or .json.
const PathV2 = "/openapi-v2"

// YAML returns the OpenAPI 3.0.3 document of version 1.
func YAML() []byte { return document }

// YAMLV2 returns the OpenAPI 3.1 document of version 2, which hack/apiv2 generates from the one of version 1 and
// openapi-v2-changes.yaml.
func YAMLV2() []byte { return documentV2 }

// JSON returns a document as JSON.
func JSON(document []byte) ([]byte, error) {
	out, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("convert an OpenAPI document to JSON: %w", err)
	}
	return out, nil
}
