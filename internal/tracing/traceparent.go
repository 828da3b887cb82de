// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	// Header is the field of a request that names its trace (W3C Trace Context).
	Header = "traceparent"

	// traceparentLength is the length of a traceparent of version 00.
	traceparentLength = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
)

// Traceparent names the span of a context, as the header of that name does; "" without
// one.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get(Header)
}

// parse reads a traceparent, which anybody may have written: only version 00 is read,
// in its exact form. Of anything else nothing is taken. A tracestate is never read: it
// would bring what clients write into the spans.
func parse(traceparent string) trace.SpanContext {
	if len(traceparent) != traceparentLength || traceparent[:3] != "00-" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{Header: traceparent})
	return trace.SpanContextFromContext(ctx)
}

// TraceID is the id of the trace that a context belongs to; "" for none.
func TraceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		return span.TraceID().String()
	}
	return ""
}
