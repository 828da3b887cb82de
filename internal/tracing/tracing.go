// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing tells an OpenTelemetry collector what Herald did for a request and
// for a post. It is made so that what is traced cannot suffer from it:
//
//   - Without a Tracer nothing is recorded and nothing allocated. Child spans begin
//     only below a span that is recorded.
//   - Spans wait for the collector in a queue of bounded length. What does not fit is
//     dropped; nothing waits for it.
//   - Spans carry values for a closed list of keys, all of them names and numbers. There is no
//     place for texts, addresses, headers and messages of errors, which could hold
//     what a person wrote or a secret.
//   - No request to a platform carries a trace: nothing here writes a header.
package tracing

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// scope names the spans' origin to the collector.
const scope = "github.com/herald-social/herald"

// Key is the name of a value that a span may carry.
type Key string

// What spans carry. Names that begin with http, server and error are those of
// OpenTelemetry's semantic conventions.
const (
	// Namespace is that of the team.
	Namespace Key = "herald.namespace"
	// Post is the name of the post, and so its id in the REST API.
	Post Key = "herald.post"
	// Phase is that of the post after a pass.
	Phase Key = "herald.phase"
	// Target is the index of a target in the post, from 0 on.
	Target Key = "herald.target"
	// Targets is how many a step is for.
	Targets Key = "herald.targets"
	// Card is the index of a tree's card, from 0 on.
	Card Key = "herald.card"
	// Platform is a platform's name, and Connection that of the resource.
	Platform   Key = "herald.platform"
	Connection Key = "herald.connection"
	// Attempt is the id of an attempt, as in the status of the post.
	Attempt Key = "herald.attempt"
	// Outcome is what came of a call: posted, refused, not sent, unknown, or what a
	// lookup found.
	Outcome Key = "herald.outcome"
	// Operation is the operationId of the REST API, and Action what a call to a
	// platform is for.
	Operation Key = "herald.operation"
	Action    Key = "herald.action"
	// RequestID is the X-Request-Id.
	RequestID Key = "herald.request_id"
	// Status is that of an HTTP answer.
	Status Key = "http.response.status_code"
	// errorType says what kind of failure it was.
	errorType Key = "error.type"
)

// Tracer begins traces. A nil one begins none.
type Tracer struct {
	tracer trace.Tracer
}

// NewTracer returns a Tracer whose spans go to a provider.
func NewTracer(provider trace.TracerProvider) *Tracer {
	return &Tracer{tracer: provider.Tracer(scope)}
}

// Span is a span that is recorded, or, as its zero value, none. A span that is never
// ended is never exported.
type Span struct {
	span trace.Span
}

// Serve begins the span of a request. It belongs to the trace that the client's
// traceparent names, if that can be read.
func (t *Tracer) Serve(ctx context.Context, traceparent string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if parent := parse(traceparent); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	return startSpan(ctx, t.tracer, "request", trace.WithSpanKind(trace.SpanKindServer))
}

// Resume begins the span of work that an earlier request asked for, whose traceparent is
// origin. With near set it belongs to the trace of that request. Otherwise it begins a
// trace of its own with a link to that one: see docs/observability.md.
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

// Child begins a span below that of the context, if there is one that is recorded.
func Child(ctx context.Context, name string) (context.Context, Span) {
	return child(ctx, name, trace.SpanKindInternal)
}

// Call is Child for a call to another system.
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

// startSpan begins a span. One that is not recorded is none, but its context says so to what
// the work leads to.
func startSpan(ctx context.Context, tracer trace.Tracer, name string, options ...trace.SpanStartOption) (context.Context, Span) {
	ctx, span := tracer.Start(ctx, name, options...)
	if !span.IsRecording() {
		return ctx, Span{}
	}
	return ctx, Span{span}
}

// Name gives the span another name.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Text sets a value; an empty one is left out.
func (s Span) Text(key Key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(string(key), value))
	}
}

// Number sets a value.
func (s Span) Number(key Key, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(string(key), value))
	}
}

// Fail says that what the span stands for failed, and how: in a word, or none, and never in
// the words of an error, which may hold anything.
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
