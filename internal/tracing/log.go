// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
)

// Fields of a log line, named as OpenTelemetry specifies for formats other than its own.
const (
	logTraceID = "trace_id"
	logSpanID  = "span_id"
)

// LogHandler adds the context's trace and span to each line.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, line slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		line = line.Clone()
		line.Add(logTraceID, span.TraceID().String(), logSpanID, span.SpanID().String())
	}
	return h.Handler.Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name)}
}

// Logger adds the context's trace and span to the lines of a logr.Logger, which have no context.
func Logger(ctx context.Context, log logr.Logger) logr.Logger {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return log
	}
	return log.WithValues(logTraceID, span.TraceID().String(), logSpanID, span.SpanID().String())
}
