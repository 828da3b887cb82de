// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// TestTracingOptions checks the precedence: the file, the variable for traces, the general variable.
func TestTracingOptions(t *testing.T) {
	const base = "http://collector:4318"
	share := func(f float64) *float64 { return &f }
	type want struct {
		URL     string
		Ratio   string
		Headers string
		Timeout time.Duration
		Gzip    bool
		Error   string
	}
	for name, tc := range map[string]struct {
		reason string
		file   configv1alpha1.Tracing
		env    map[string]string
		want   want
	}{
		"off":           {"tracing is not configured", configv1alpha1.Tracing{}, nil, want{}},
		"off, sampling": {"a sampling ratio alone has no effect", configv1alpha1.Tracing{SamplingRatio: share(1)}, nil, want{}},
		"file":          {"the chart writes it", configv1alpha1.Tracing{Endpoint: base}, nil, want{URL: base + "/v1/traces", Ratio: "1"}},
		"file, path":    {"collectors of companies have one", configv1alpha1.Tracing{Endpoint: "https://otlp.example.com/otlp/"}, nil, want{URL: "https://otlp.example.com/otlp/v1/traces", Ratio: "1"}},
		"variable": {"an operator of OpenTelemetry sets it in pods", configv1alpha1.Tracing{}, map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": base + "/",
		}, want{URL: base + "/v1/traces", Ratio: "1"}},
		"variable for traces": {"the variable contains the whole address", configv1alpha1.Tracing{}, map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": base, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces:4318/ingest",
		}, want{URL: "http://traces:4318/ingest", Ratio: "1"}},
		"both": {"Herald's own configuration takes precedence", configv1alpha1.Tracing{Endpoint: base, SamplingRatio: share(0.1)}, map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces:4318/ingest", "OTEL_TRACES_SAMPLER": "always_on",
		}, want{URL: base + "/v1/traces", Ratio: "0.1"}},
		"no variables": {"zero is a share, too", configv1alpha1.Tracing{Endpoint: base, SamplingRatio: share(0)}, nil, want{URL: base + "/v1/traces", Ratio: "0"}},
		"sampler": {"the variable provides a missing field", configv1alpha1.Tracing{Endpoint: base}, map[string]string{
			"OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
		}, want{URL: base + "/v1/traces", Ratio: "of the SDK"}},
		"unsupported variables": {"variables without a field apply", configv1alpha1.Tracing{Endpoint: base}, map[string]string{
			"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20aHVudGVyMg==, X-Team = a%2Cb", "OTEL_EXPORTER_OTLP_TIMEOUT": "2500", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip",
		}, want{URL: base + "/v1/traces", Ratio: "1", Headers: "map[Authorization:[Basic aHVudGVyMg==] X-Team:[a,b]]", Timeout: 2500 * time.Millisecond, Gzip: true}},
		"switched off": {"OpenTelemetry's own switch", configv1alpha1.Tracing{Endpoint: base}, map[string]string{"OTEL_SDK_DISABLED": "true"}, want{}},
		"gRPC": {"Herald does not support gRPC, and the error names the remedy", configv1alpha1.Tracing{}, map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": base, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		}, want{Error: "http/protobuf"}},
		"no address": {"an address without a scheme", configv1alpha1.Tracing{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, want{Error: "use one like http://collector:4318"}},
		"headers":    {"secrets are not repeated", configv1alpha1.Tracing{Endpoint: base}, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "hunter2"}, want{Error: "key=value"}},
		"timeout":    {"the timeout is in milliseconds", configv1alpha1.Tracing{Endpoint: base}, map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, want{Error: "milliseconds"}},
		"authority":  {"a typing error must show", configv1alpha1.Tracing{Endpoint: base}, map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "/does/not/exist"}, want{Error: "OTEL_EXPORTER_OTLP_CERTIFICATE: "}},
		"half a certificate": {"the certificate has only a key", configv1alpha1.Tracing{Endpoint: base}, map[string]string{
			"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/does/not/exist",
		}, want{Error: "CLIENT_KEY"}},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := tracingOptions(&tc.file, "herald-manager", "1.0.0", slog.New(slog.DiscardHandler), func(name string) string { return tc.env[name] })
			var got want
			switch {
			case err != nil:
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("a secret is repeated: %v", err)
				}
				if tc.want.Error != "" && strings.Contains(err.Error(), tc.want.Error) {
					return
				}
				got.Error = err.Error()
			case options != nil:
				got = want{URL: options.Collector.URL, Ratio: "of the SDK", Timeout: options.Collector.Timeout, Gzip: options.Collector.Gzip}
				if options.SamplingRatio != nil {
					got.Ratio = fmt.Sprint(*options.SamplingRatio)
				}
				if len(options.Collector.Header) > 0 {
					got.Headers = fmt.Sprint(map[string][]string(options.Collector.Header))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestWrongVariable starts with an invalid variable: the process continues without traces.
func TestWrongVariable(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	var out bytes.Buffer
	tracer, flush := StartTracing(t.Context(), &configv1alpha1.Tracing{}, "herald-manager", "1.0.0", slog.New(slog.NewTextHandler(&out, nil)))
	flush()
	if tracer != nil || !strings.Contains(out.String(), "There are no traces") {
		t.Errorf("got %v, and %s", tracer, &out)
	}
}
