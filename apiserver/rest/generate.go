// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

// The limiter sets the headers of the rate limit, on every answer. The generator
// would wrap every answer to set them once more, so they are kept from it.
//
//go:generate sh -c "sed '/ headers: {RateLimit-Limit: /d' ../openapi/openapi.yaml > openapi.gen.yaml"
//go:generate go tool -modfile=../../hack/tools/go.mod ogen -loglevel error -target oas -package oas -clean -config ../openapi/ogen.yml openapi.gen.yaml
//go:generate rm openapi.gen.yaml
//go:generate gofmt -w -r "new(jx.Encoder) -> jx.GetEncoder()" oas/oas_response_encoders_gen.go
//go:generate gofmt -w -r "e.WriteTo(w) -> writeAnswer(e, w)" oas/oas_response_encoders_gen.go
