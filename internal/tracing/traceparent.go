// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	// Header is the request header that carries the trace (W3C Trace Context).
	Header = "traceparent"

	// traceparentLength is the length of a version 00 traceparent.
	traceparentLength = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
)

// Traceparent returns the context's span in the format of that header, or "" if there is none.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get(Header)
}

// parse parses a traceparent from an untrusted source. It accepts only version 00 in its exact form. It never reads the
// tracestate, which would put text from clients into the spans.
func parse(traceparent string) trace.SpanContext {
	if len(traceparent) != traceparentLength || traceparent[:3] != "00-" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{Header: traceparent})
	return trace.SpanContextFromContext(ctx)
}

// TraceID returns the id of the trace that the context belongs to, or "" if there is none.
func TraceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		return span.TraceID().String()
	}
	return ""
}
