// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/internal/tracing"
)

// TestTraceOfACreation verifies that a post records the trace of the request that created it, and that the check of a
// connection is a span of the trace.
func TestTraceOfACreation(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	tracer := tracing.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	traced, span := tracer.Serve(t.Context(), "")
	defer span.End()
	for reason, ctx := range map[string]context.Context{"tracing is off": t.Context(), "the request is traced": traced} {
		p := &posts{stored: map[string]*v1alpha1.Post{}}
		made, err := service(p, inMemory("acme")).CreatePost(ctx, caller, hello("acme"))
		if err != nil {
			t.Fatal(err)
		}
		want := tracing.Traceparent(ctx)
		if got, found := p.stored[made.ID].Annotations[v1alpha1.TraceparentAnnotation]; got != want || found != (want != "") {
			t.Errorf("%s: the annotation is %q, want %q", reason, got, want)
		}
	}
	var checked []attribute.KeyValue
	for _, span := range recorder.Ended() {
		if span.Name() == "check connection" {
			checked = append(checked, span.Attributes()...)
		}
	}
	want := []attribute.KeyValue{
		attribute.String(string(tracing.Connection), "acme"), attribute.String(string(tracing.Platform), "x"),
		attribute.String(string(tracing.Outcome), readiness.Ready.String()),
	}
	if !slices.Equal(checked, want) {
		t.Errorf("the span has the attributes %v, want %v", checked, want)
	}
}
