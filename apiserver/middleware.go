// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/internal/tracing"
)

const (
	requestIDHeader = "X-Request-Id"
	// maxRequestID limits the length of a client's request id, in bytes.
	maxRequestID = 128
	noOperation  = "none"
)

// observer assigns a request id, writes the access log, metrics and trace, and turns a panic into a response.
type observer struct {
	next    http.Handler
	metrics *metrics
	tracer  *tracing.Tracer
	proxies request.Proxies
	clock   clock.PassiveClock
	log     *slog.Logger
	lines   *limits.LogLimiter
}

func (o *observer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := o.clock.Now()
	out := &recorder{ResponseWriter: w}
	info := &request.Info{ID: requestID(r), Client: o.proxies.Client(r), Header: out.Header(), Vouch: limits.Authenticator(r.Context())}
	ctx, span := o.tracer.Serve(request.With(r.Context(), info), r.Header.Get(tracing.Header))
	r = r.WithContext(ctx)
	out.Header().Set(requestIDHeader, info.ID)
	out.Header().Set("X-Content-Type-Options", "nosniff")
	o.metrics.inFlight.Inc()
	defer func() {
		o.metrics.inFlight.Dec()
		panicked := recover()
		cut := o.afterPanic(ctx, out, info, panicked)
		o.report(r, out, info, o.clock.Since(start))
		trace(span, out, info)
		if cut {
			panic(http.ErrAbortHandler)
		}
	}()
	o.next.ServeHTTP(out, r)
}

// afterPanic writes the response for a panic. It returns true if the response has already started and must be cut off.
func (o *observer) afterPanic(ctx context.Context, out *recorder, info *request.Info, panicked any) (cut bool) {
	if panicked == nil {
		return false
	}
	if err, ok := panicked.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return true
	}
	cause := fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
	if out.status != 0 {
		info.Err = cause
		return true
	}
	rest.WriteInternal(ctx, out, cause)
	return false
}

// trace ends a request's span. Unauthenticated requests neither fill the collector nor influence sampling.
func trace(span tracing.Span, out *recorder, info *request.Info) {
	if info.Key == "" {
		return
	}
	status := cmp.Or(out.status, http.StatusOK)
	span.Name(cmp.Or(info.Operation, noOperation))
	span.Text(tracing.Operation, info.Operation)
	span.Text(tracing.Namespace, info.Namespace)
	span.Text(tracing.RequestID, info.ID)
	span.Number(tracing.Status, status)
	if status >= http.StatusInternalServerError || info.Err != nil {
		span.Fail("internal")
	}
	span.End()
}

// requestID returns the client's request id if it is safe to log, and a new one otherwise.
func requestID(r *http.Request) string {
	id := r.Header.Get(requestIDHeader)
	if id == "" || len(id) > maxRequestID {
		return rand.Text()
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return rand.Text()
		}
	}
	return id
}

type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
