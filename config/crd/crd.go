// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd holds the resource definitions that belong to this version.
package crd

import "embed"

//go:generate go run ../../hack/kinds ../../docs/kinds.md

// Definitions are the generated files in bases/, each with one
// CustomResourceDefinition.
//
//go:embed bases/*.yaml
var Definitions embed.FS
