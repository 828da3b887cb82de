// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi contains the HTTP API's OpenAPI document, and the pages that describe it. The document of
// version 1 is handwritten; tests compare apiserver/rest and apiserver/wire with it.
package openapi

import (
	_ "embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
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

// YAMLV2 returns the OpenAPI 3.1 document of version 2, which hack/apiv2 generates from the document of version 1 and
// openapi-v2-changes.yaml. It has the platforms of version 1; see YAMLV2With.
func YAMLV2() []byte { return documentV2 }

// Capabilities returns a platform's declared capabilities, or false if the installation does not publish there.
type Capabilities = func(v1alpha1.Platform) (platforms.Capabilities, bool)

// LaterPlatforms returns the platforms that the installation publishes to and that version 1 does not have.
func LaterPlatforms(of Capabilities) []v1alpha1.Platform {
	var later []v1alpha1.Platform
	for _, name := range v1alpha1.Platforms() {
		if _, ok := of(name); ok && !name.InVersion1() {
			later = append(later, name)
		}
	}
	return later
}

// The places in the document that list platforms: the enumeration, and the table of categories.
const (
	platformEnum    = "enum: [youtube, tiktok, instagram, threads, x, facebook"
	categoriesTable = "        | category | platforms |\n"
)

// YAMLV2With returns an installation's version 2 document. Platforms that are new in version 2 are listed only if the
// installation publishes to them.
func YAMLV2With(of Capabilities) []byte {
	out := string(documentV2)
	for _, name := range LaterPlatforms(of) {
		limits, _ := of(name)
		out = strings.Replace(out, platformEnum, platformEnum+", "+string(name), 1)
		begin := strings.Index(out, categoriesTable)
		head, table := out[:begin], out[begin:]
		for _, category := range limits.Categories {
			row := "        | `" + string(category) + "` | "
			table = strings.Replace(table, row, row+"`"+string(name)+"`, ", 1)
		}
		out = head + table
	}
	return []byte(out)
}

// JSON returns a document as JSON.
func JSON(document []byte) ([]byte, error) {
	out, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("convert an OpenAPI document to JSON: %w", err)
	}
	return out, nil
}
