// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/herald-social/herald/test/must"
)

const (
	requestTrace = "0af7651916cd43dd8448eb211c80319c"
	requestSpan  = "b7ad6b7169203331"
	sampled      = "00-" + requestTrace + "-" + requestSpan + "-01"
	unsampled    = "00-" + requestTrace + "-" + requestSpan + "-00"
)

// recording returns a Tracer with this sampling ratio, and its recorder.
func recording(t *testing.T, ratio float64) (*Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	return NewTracer(sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(asTheRequest{sdktrace.TraceIDRatioBased(ratio)}))), recorder
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, value string
		reads         bool
	}{
		"sampled":      {"a client with tracing sends it", sampled, true},
		"not sampled":  {"a decision too", unsampled, true},
		"missing":      {"most clients do not trace", "", false},
		"words":        {"annotations can be forged", "yes please", false},
		"version ff":   {"W3C forbids it", "ff" + sampled[2:], false},
		"version 01":   {"the format of a later version is unknown", "01" + sampled[2:], false},
		"longer":       {"version 00 does not have more fields", sampled + "-00", false},
		"blank":        {"the blank is not trimmed", sampled + " ", false},
		"capitals":     {"W3C wants small letters", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false},
		"zero trace":   {"the trace id is invalid", "00-00000000000000000000000000000000-b7ad6b7169203331-01", false},
		"zero span":    {"the span id is invalid", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false},
		"moved dashes": {"the lengths are fixed", "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01", false},
		"flags":        {"version 00 has two flags", sampled[:len(sampled)-2] + "ff", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parse(tc.value); got.IsValid() != tc.reads {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

// FuzzParse checks the form of an accepted traceparent: it is written as it was read.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{sampled, unsampled, "", "00-", sampled + "-", "01" + sampled[2:]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		read := parse(value)
		if !read.IsValid() {
			return
		}
		if got := Traceparent(trace.ContextWithSpanContext(t.Context(), read)); got != value {
			t.Errorf("%q was read as %q", value, got)
		}
		if read.TraceState().Len() > 0 {
			t.Errorf("%q brought a state", value)
		}
	})
}

// TestOff checks that tracing costs nothing while it is off.
func TestOff(t *testing.T) {
	var none *Tracer
	ctx := t.Context()
	allocated := testing.AllocsPerRun(100, func() {
		ctx, span := none.Serve(ctx, sampled)
		ctx, pass := none.Resume(ctx, "deliver", sampled, true)
		ctx, child := Child(ctx, "publish")
		_, call := Call(ctx, "call platform")
		for _, s := range []Span{span, pass, child, call} {
			s.Name("createPost")
			s.Text(Namespace, "team-acme")
			s.Number(Target, 1)
			s.Fail("transient")
			s.End()
		}
		if Traceparent(ctx) != "" || TraceID(ctx) != "" {
			t.Error("got a trace")
		}
	})
	if allocated != 0 {
		t.Errorf("%v allocations without a trace", allocated)
	}
}

func TestOrigin(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, origin string
		near           bool
		ratio          float64
		continues      bool
		links          bool
		records        bool
	}{
		"near":                {"the request and its delivery are one story", sampled, true, 0, true, false, true},
		"far":                 {"a trace of hours is of no use", sampled, false, 0, false, true, true},
		"near, not sampled":   {"the caller decided", unsampled, true, 1, true, false, false},
		"far, not sampled":    {"a post is traced completely or not at all", unsampled, false, 1, false, true, false},
		"by kubectl":          {"kubectl's posts have no request", "", true, 1, false, false, true},
		"by kubectl, unlucky": {"the ratio decides", "", false, 0, false, false, false},
		"a forged annotation": {"a forged annotation is ignored", "00-x", true, 1, false, false, true},
		"forged":              {"a forged annotation is ignored", "00-x", true, 0, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			tracer, recorder := recording(t, tc.ratio)
			ctx, span := tracer.Resume(t.Context(), "deliver", tc.origin, tc.near)
			_, child := Child(ctx, "publish")
			child.End()
			span.End()
			if ended := recorder.Ended(); (len(ended) == 2) != tc.records || len(ended) != 0 && len(ended) != 2 {
				t.Fatalf("%s: %d spans are recorded", tc.reason, len(ended))
			}
			if !tc.records {
				return
			}
			deliver := recorder.Ended()[1]
			if got := deliver.SpanContext().TraceID().String() == requestTrace; got != tc.continues {
				t.Errorf("%s: continues the trace: %v", tc.reason, got)
			}
			links := deliver.Links()
			if got := len(links) == 1 && links[0].SpanContext.TraceID().String() == requestTrace; got != tc.links {
				t.Errorf("%s: links %v", tc.reason, links)
			}
			if parent := recorder.Ended()[0].Parent(); parent.SpanID() != deliver.SpanContext().SpanID() {
				t.Errorf("the child's parent is %v", parent)
			}
		})
	}
}

func TestServe(t *testing.T) {
	tracer, recorder := recording(t, 1)
	ctx, span := tracer.Serve(t.Context(), sampled)
	if got := TraceID(ctx); got != requestTrace {
		t.Errorf("the trace is %q", got)
	}
	carried := Traceparent(ctx)
	if parse(carried).TraceID().String() != requestTrace || carried == sampled {
		t.Errorf("a post carries %q; want the span of the request itself", carried)
	}
	span.Name("createPost")
	span.Text(Namespace, "team-acme")
	span.Text(RequestID, "")
	span.Number(Status, 201)
	span.End()
	got := recorder.Ended()[0]
	values := map[string]string{}
	for _, a := range got.Attributes() {
		values[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{"herald.namespace": "team-acme", "http.response.status_code": "201"}
	if diff := cmp.Diff(want, values); diff != "" || got.Name() != "createPost" || got.SpanKind() != trace.SpanKindServer {
		t.Errorf("%s %s: %s", got.Name(), got.SpanKind(), diff)
	}
}

// TestUnfinishedSpans checks that a span that is not ended is not exported. Reconciliations that find nothing to do
// rely on this.
func TestUnfinishedSpans(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	NewTracer(provider).Resume(t.Context(), "deliver", "", false)
	must.Succeed(t, provider.ForceFlush(t.Context()))
	if got := exporter.GetSpans(); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

func TestLog(t *testing.T) {
	tracer, _ := recording(t, 1)
	ctx, span := tracer.Serve(t.Context(), sampled)
	defer span.End()
	for name, tc := range map[string]struct {
		reason string
		ctx    context.Context
		write  func(ctx context.Context, log *slog.Logger)
		trace  any
	}{
		"slog": {"the apiserver logs with slog", ctx, func(ctx context.Context, log *slog.Logger) { log.With("a", 1).InfoContext(ctx, "Request") }, requestTrace},
		"logr": {"the manager logs with logr", ctx, func(ctx context.Context, log *slog.Logger) {
			Logger(ctx, logr.FromSlogHandler(log.Handler())).Info("published")
		}, requestTrace},
		"outside": {"the context has no trace", t.Context(), func(ctx context.Context, log *slog.Logger) { log.InfoContext(ctx, "Starting") }, nil},
		"logr outside": {"the context has no trace", t.Context(), func(ctx context.Context, log *slog.Logger) {
			Logger(ctx, logr.FromSlogHandler(log.Handler())).Info("starting")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tc.write(tc.ctx, slog.New(LogHandler(slog.NewJSONHandler(&out, nil))))
			line := map[string]any{}
			must.Succeed(t, json.Unmarshal(out.Bytes(), &line))
			if line["trace_id"] != tc.trace || (line["span_id"] != nil) != (tc.trace != nil) {
				t.Errorf("%s: got %s", tc.reason, &out)
			}
		})
	}
}
