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

// Info is data about one request. Only the goroutine that serves the request may use it.
type Info struct {
	// ID is the request's X-Request-Id.
	ID string
	// Operation is the API's operationId, or "".
	Operation string
	// Namespace and Key identify the caller; empty until the caller is authenticated.
	Namespace string
	Key       string
	// Client is the client's address according to the trusted proxies; zero if unknown.
	Client netip.Addr
	// Header is the response header.
	Header http.Header
	// Authenticated is true once the client has presented a valid key, token or session. MarkAuthenticated sets it.
	Authenticated bool
	// Vouch is called by MarkAuthenticated; may be nil.
	Vouch func()
	// Err is the cause of an internal error, only for the log.
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

// From returns the Info in a context, or a new one that is not read.
func From(ctx context.Context) *Info {
	if info, ok := ctx.Value(infoKey{}).(*Info); ok {
		return info
	}
	return &Info{Header: http.Header{}}
}

// Limits for client input in logs and responses, in bytes: enough to recognize it.
const (
	maxShown  = 256
	maxMethod = 16
)

// Short truncates client input, such as a path.
func Short(text string) string { return cut(text, maxShown) }

// Method returns a request's method, truncated because a client may send anything.
func Method(r *http.Request) string { return cut(r.Method, maxMethod) }

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
