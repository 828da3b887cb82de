// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package request carries data about a request from its handlers back to the log and the metrics.
package request

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

// Info is the data about one request. Only the goroutine that serves the request may use it.
type Info struct {
	// ID is the request's X-Request-Id.
	ID string
	// Operation is the operationId of the API, or "".
	Operation string
	// Namespace and Key identify the caller; empty before authentication.
	Namespace string
	Key       string
	// Client is the address of the client, according to the trusted proxies; zero if unknown.
	Client netip.Addr
	// Header is the header of the response.
	Header http.Header
	// Authenticated is true after the client has presented a valid key, token or session. MarkAuthenticated sets it.
	Authenticated bool
	// Vouch, which may be nil, is called by MarkAuthenticated.
	Vouch func()
	// Err is the cause of an internal error, for the log only.
	Err error
}

// MarkAuthenticated records that the client has presented a valid key, token or session.
func (i *Info) MarkAuthenticated() {
	if i.Authenticated = true; i.Vouch != nil {
		i.Vouch()
	}
}

type infoKey struct{}

// With returns a context with info.
func With(ctx context.Context, info *Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// From returns the Info of a context, or a new one without effect.
func From(ctx context.Context) *Info {
	if info, ok := ctx.Value(infoKey{}).(*Info); ok {
		return info
	}
	return &Info{Header: http.Header{}}
}

// Limits of client input in logs and responses, in bytes: enough to recognise it.
const (
	maxShown  = 256
	maxMethod = 16
)

// Short truncates client input, such as a path.
func Short(text string) string { return cut(text, maxShown) }

// Method returns the truncated method of a request, which a client may invent.
func Method(r *http.Request) string { return cut(r.Method, maxMethod) }

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
