// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

//go:generate go tool -modfile=../../hack/tools/go.mod ogen -loglevel error -target oas -package oas -clean -config ../openapi/ogen.yml ../openapi/openapi.yaml
