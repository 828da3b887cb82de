// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing reports what Herald does for a request and for a post to an OpenTelemetry collector. Tracing cannot
// impair the traced work:
//
//   - Without a Tracer, nothing is recorded and nothing allocated. Child spans start only below a recorded span.
//   - Spans wait for the collector in a bounded queue. Spans that do not fit are dropped; nothing waits for the queue.
//   - Spans carry values for a closed list of keys, all of them names and numbers. There is no place for text, URLs,
//     headers and error messages, which could contain a user's text or a secret.
//   - No request to a platform carries a trace: nothing here writes a header.
package tracing

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/herald-social/herald"

// AttributeKey is the name of a value that a span may carry.
type AttributeKey string

// The keys of span values. Names with the prefixes http, server and error are OpenTelemetry's semantic conventions.
const (
	// Namespace is the team's namespace.
	Namespace AttributeKey = "herald.namespace"
	// Post is the post's name, which is also its id in the REST API.
	Post AttributeKey = "herald.post"
	// Phase is the post's phase after a reconciliation.
	Phase AttributeKey = "herald.phase"
	// Target is the index of a target in the post, from 0.
	Target AttributeKey = "herald.target"
	// Targets is the number of targets in a step.
	Targets AttributeKey = "herald.targets"
	// Card is the index of a card in its tree, from 0.
	Card AttributeKey = "herald.card"
	// Platform is the name of a platform, and Connection the name of the Connection.
	Platform   AttributeKey = "herald.platform"
	Connection AttributeKey = "herald.connection"
	// Attempt is the id of an attempt, as in the post's status.
	Attempt AttributeKey = "herald.attempt"
	// Outcome is the outcome of a call: posted, refused, not sent, unknown, or the result of a lookup.
	Outcome AttributeKey = "herald.outcome"
	// Operation is the operationId of the REST API, and Action the purpose of a call to a platform.
	Operation AttributeKey = "herald.operation"
	Action    AttributeKey = "herald.action"
	// RequestID is the X-Request-Id.
	RequestID AttributeKey = "herald.request_id"
	// Status is the status of an HTTP response.
	Status    AttributeKey = "http.response.status_code"
	errorType AttributeKey = "error.type"
)

// Tracer starts traces. A nil Tracer starts none.
type Tracer struct {
	tracer trace.Tracer
}

// NewTracer returns a Tracer whose spans go to a provider.
func NewTracer(provider trace.TracerProvider) *Tracer {
	return &Tracer{tracer: provider.Tracer(scope)}
}

// Span is a recorded span. The zero value does nothing. A span that is never ended is never exported.
type Span struct {
	span trace.Span
}

// Serve starts the span for a request. It belongs to the trace in the client's traceparent, if that is valid.
func (t *Tracer) Serve(ctx context.Context, traceparent string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if parent := parse(traceparent); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	return startSpan(ctx, t.tracer, "request", trace.WithSpanKind(trace.SpanKindServer))
}

// Resume starts the span for work on an earlier request, whose traceparent is origin. If near is set, the span belongs
// to the request's trace. Otherwise it starts a new trace with a link to the trace of the request: see
// docs/observability.md.
func (t *Tracer) Resume(ctx context.Context, name, origin string, near bool) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	parent := parse(origin)
	switch {
	case !parent.IsValid():
		return startSpan(ctx, t.tracer, name)
	case near:
		return startSpan(trace.ContextWithRemoteSpanContext(ctx, parent), t.tracer, name, trace.WithSpanKind(trace.SpanKindConsumer))
	default:
		return startSpan(ctx, t.tracer, name, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(trace.Link{SpanContext: parent}))
	}
}

// Child starts a span below the context's span, if that is recorded.
func Child(ctx context.Context, name string) (context.Context, Span) {
	return child(ctx, name, trace.SpanKindInternal)
}

// Call is like Child, for a call to another system.
func Call(ctx context.Context, name string) (context.Context, Span) {
	return child(ctx, name, trace.SpanKindClient)
}

func child(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() && !parent.SpanContext().IsSampled() {
		return ctx, Span{}
	}
	return startSpan(ctx, parent.TracerProvider().Tracer(scope), name, trace.WithSpanKind(kind))
}

// startSpan starts a span. An unsampled span does nothing, but its context carries that decision to later spans.
func startSpan(ctx context.Context, tracer trace.Tracer, name string, options ...trace.SpanStartOption) (context.Context, Span) {
	ctx, span := tracer.Start(ctx, name, options...)
	if !span.IsRecording() {
		return ctx, Span{}
	}
	return ctx, Span{span}
}

// Name renames the span.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Text sets a value. It omits an empty one.
func (s Span) Text(key AttributeKey, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(string(key), value))
	}
}

// Number sets a value.
func (s Span) Number(key AttributeKey, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(string(key), value))
	}
}

// Fail marks the span as failed. kind is a word or empty, never an error message, which may contain anything.
func (s Span) Fail(kind string) {
	if s.span != nil {
		s.span.SetStatus(codes.Error, "")
		s.span.SetAttributes(attribute.String(string(errorType), cmp.Or(kind, "_OTHER")))
	}
}

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}
