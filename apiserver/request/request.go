// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package request carries what is learnt of a request on its way inwards back
// out to the log and the metrics.
package request

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
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
	// Client is the address of who asks; it is behind trusted proxies, if there are any.
	// The zero one is not known.
	Client netip.Addr
	// Header is that of the answer.
	Header http.Header
	// Authenticated says that whoever asks has shown a good key, token or session; all others are strangers. Know sets it.
	Authenticated bool
	// Vouch, which may be nil, is called then.
	Vouch func()
	// Err is the cause of an internal error, for the log only.
	Err error
}

// MarkAuthenticated notes that whoever asks has shown a good key, token or session.
func (i *Info) MarkAuthenticated() {
	if i.Authenticated = true; i.Vouch != nil {
		i.Vouch()
	}
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

// How much of what a client wrote goes into a log or an answer, in bytes: enough to know it
// again.
const (
	maxShown  = 256
	maxMethod = 16
)

// Short is the beginning of what a client wrote, such as a path.
func Short(text string) string { return cut(text, maxShown) }

// Method is the method of a request, which a client may make up.
func Method(r *http.Request) string { return cut(r.Method, maxMethod) }

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
