// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package request carries what is learnt of a request on its way inwards back
// out to the log and the metrics.
package request

import (
	"context"
	"net/http"
)

// Info is what is known of one request. It belongs to the goroutine that
// serves the request.
type Info struct {
	// ID is the request's X-Request-Id.
	ID string
	// Operation is the operationId of the API, "" if none was reached.
	Operation string
	// Namespace and Key say who called, "" before that is known.
	Namespace string
	Key       string
	// Header is that of the answer.
	Header http.Header
	// Err is the cause of an internal error, for the log only.
	Err error
}

type infoKey struct{}

// With returns a context that carries info.
func With(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// From returns the Info that the context carries, or a new one without effect.
func From(ctx context.Context) *Info {
	if info, ok := ctx.Value(infoKey{}).(*Info); ok {
		return info
	}
	return &Info{Header: http.Header{}}
}
