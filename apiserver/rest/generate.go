// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

//go:generate go tool -modfile=../../hack/tools/go.mod ogen -loglevel error -target oas -package oas -clean -config ../openapi/ogen.yml ../openapi/openapi.yaml
//go:generate gofmt -w -r "new(jx.Encoder) -> jx.GetEncoder()" oas/oas_response_encoders_gen.go
//go:generate gofmt -w -r "e.WriteTo(w) -> writeAnswer(e, w)" oas/oas_response_encoders_gen.go
