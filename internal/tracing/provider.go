// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// Options says where spans go and which ones.
type Options struct {
	// Collector is where they go.
	Collector Collector
	// Service names the process to the collector, Version its version, and Instance
	// tells it from the others; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come
	// before.
	Service, Version, Instance string
	// SamplingRatio is the share of traces that are recorded, from 0 to 1, of those of
	// which no request has decided it. Nil leaves all to OTEL_TRACES_SAMPLER.
	SamplingRatio *float64
	// Log is told of what cannot be delivered.
	Log *slog.Logger
}

// Provider makes spans and delivers them, in the background.
type Provider struct {
	sdk *sdktrace.TracerProvider
}

// trouble is how often it is logged that spans cannot be delivered.
const trouble = time.Minute

// Start begins to deliver spans. There is one Provider in a process: it takes over
// OpenTelemetry's own log.
func Start(ctx context.Context, o Options) (*Provider, error) {
	exporter, err := otlptrace.New(ctx, newClient(o.Collector))
	if err != nil {
		return nil, fmt.Errorf("set up the export of traces: %w", err)
	}
	otel.SetLogger(logr.FromSlogHandler(o.Log.Handler()).WithName("opentelemetry"))
	seldom := rate.Sometimes{Interval: trouble}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		seldom.Do(func() {
			o.Log.WarnContext(context.WithoutCancel(ctx), "Traces cannot be delivered; spans are dropped, and nothing else suffers", "error", err)
		})
	}))
	from, err := resource.Merge(
		resource.NewSchemaless(
			attribute.String("service.name", o.Service),
			attribute.String("service.version", o.Version),
			attribute.String("service.instance.id", o.Instance),
		), resource.EnvironmentWithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	options := []sdktrace.TracerProviderOption{
		// The queue is bounded (OTEL_BSP_MAX_QUEUE_SIZE, 2048 spans), and what does not fit
		// is dropped.
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(from),
	}
	if o.SamplingRatio != nil {
		options = append(options, sdktrace.WithSampler(asTheRequest{sdktrace.TraceIDRatioBased(*o.SamplingRatio)}))
	}
	return &Provider{sdk: sdktrace.NewTracerProvider(options...)}, nil
}

// Tracer returns what begins traces.
func (p *Provider) Tracer() *Tracer { return NewTracer(p.sdk) }

// Shutdown delivers what waits, for no longer than the context lasts. What is not
// delivered then is lost.
func (p *Provider) Shutdown(ctx context.Context) error {
	if err := p.sdk.Shutdown(ctx); err != nil {
		return fmt.Errorf("the last spans were not delivered: %w", err)
	}
	return nil
}

// asTheRequest decides which traces are recorded: as the request that asked for it was
// decided, whether its trace goes on or is linked to. So either all of a post is
// there or nothing. What no request asked for is decided by fresh.
type asTheRequest struct{ fresh sdktrace.Sampler }

// ShouldSample implements sdktrace.Sampler.
func (s asTheRequest) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	origin := trace.SpanContextFromContext(p.ParentContext)
	if !origin.IsValid() && len(p.Links) > 0 {
		origin = p.Links[0].SpanContext
	}
	switch {
	case !origin.IsValid():
		return s.fresh.ShouldSample(p)
	case origin.IsSampled():
		return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
	default:
		return sdktrace.SamplingResult{Decision: sdktrace.Drop}
	}
}

// Description implements sdktrace.Sampler.
func (s asTheRequest) Description() string { return "AsTheRequest{" + s.fresh.Description() + "}" }
