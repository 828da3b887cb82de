// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd contains this version's resource definitions.
package crd

import "embed"

//go:generate go run ../../hack/kinds ../../docs/kinds.md

// Definitions contains the generated files in bases/, with one CustomResourceDefinition each.
//
//go:embed bases/*.yaml
var Definitions embed.FS
