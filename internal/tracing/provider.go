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

// Options configure the export of spans.
type Options struct {
	// Collector is the destination.
	Collector Collector
	// Service is the name of the process in the collector, Version is its version, and Instance identifies it among the
	// others. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
	Service, Version, Instance string
	// SamplingRatio is the fraction of traces to sample, from 0 to 1, for requests that carry no sampling decision. If nil,
	// OTEL_TRACES_SAMPLER applies.
	SamplingRatio *float64
	// Log receives delivery errors.
	Log *slog.Logger
}

// Provider makes spans and delivers them in the background.
type Provider struct {
	sdk *sdktrace.TracerProvider
}

const trouble = time.Minute

// Start starts delivering spans. A process has only one Provider, since Start replaces OpenTelemetry's own log.
func Start(ctx context.Context, o Options) (*Provider, error) {
	exporter, err := otlptrace.New(ctx, newClient(o.Collector))
	if err != nil {
		return nil, fmt.Errorf("set up the export of traces: %w", err)
	}
	otel.SetLogger(logr.FromSlogHandler(o.Log.Handler()).WithName("opentelemetry"))
	seldom := rate.Sometimes{Interval: trouble}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		seldom.Do(func() {
			o.Log.WarnContext(context.WithoutCancel(ctx), "Traces cannot be delivered; spans are dropped", "error", err)
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
		// The queue is bounded (OTEL_BSP_MAX_QUEUE_SIZE, 2048 spans). Spans beyond that are dropped.
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(from),
	}
	if o.SamplingRatio != nil {
		options = append(options, sdktrace.WithSampler(asTheRequest{sdktrace.TraceIDRatioBased(*o.SamplingRatio)}))
	}
	return &Provider{sdk: sdktrace.NewTracerProvider(options...)}, nil
}

// Tracer returns a Tracer that starts traces.
func (p *Provider) Tracer() *Tracer { return NewTracer(p.sdk) }

// Shutdown delivers the queued spans until ctx is done. Undelivered spans are lost.
func (p *Provider) Shutdown(ctx context.Context) error {
	if err := p.sdk.Shutdown(ctx); err != nil {
		return fmt.Errorf("the last spans were not delivered: %w", err)
	}
	return nil
}

// asTheRequest samples a trace the way the originating request was sampled, whether it continues the request's trace or
// is linked to it. So either all of a post's spans are recorded or none. Without such a request, fresh decides.
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
