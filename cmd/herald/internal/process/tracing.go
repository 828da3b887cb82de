// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/internal/tracing"
)

// lastSpans is the timeout for exporting the last spans at shutdown.
const lastSpans = 3 * time.Second

// StartTracing starts exporting a service's traces if an endpoint is configured. It returns the tracer and a function
// that stops the export. An invalid environment variable must not prevent publishing, so it is logged and disables
// tracing.
func StartTracing(ctx context.Context, c *configv1alpha1.Tracing, service, version string, log *slog.Logger) (*tracing.Tracer, func()) {
	none := func() {}
	options, err := tracingOptions(c, service, version, log, os.Getenv)
	if err == nil && options == nil {
		return nil, none
	}
	var provider *tracing.Provider
	if err == nil {
		provider, err = tracing.Start(ctx, *options)
	}
	if err != nil {
		log.ErrorContext(ctx, "There are no traces", "error", err)
		return nil, none
	}
	log.InfoContext(ctx, "Traces are delivered by OTLP over HTTP")
	return provider.Tracer(), func() {
		if ctx.Err() == nil {
			return // the process exits on its own, as after a lost lease, and must not wait
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.WarnContext(ctx, "Traces ended early", "error", err)
		}
	}
}

// tracingOptions returns the options from the file or else from OpenTelemetry's environment variables, as its
// specification defines them, or nil without an endpoint.
func tracingOptions(c *configv1alpha1.Tracing, service, version string, log *slog.Logger, getenv func(string) string) (*tracing.Options, error) {
	env := exporterEnv(getenv)
	address, err := tracesAddress(c.Endpoint, env)
	if err != nil || address == "" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, err
	}
	if protocol := env.of("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %s, and Herald supports only http/protobuf; set that, and the collector's port for it, usually 4318", protocol)
	}
	collector := tracing.Collector{URL: address, Proxy: http.ProxyFromEnvironment, Gzip: env.of("COMPRESSION") == "gzip"}
	if collector.Header, err = headersOf(env.of("HEADERS")); err != nil {
		return nil, err
	}
	if timeout := env.of("TIMEOUT"); timeout != "" {
		milliseconds, err := strconv.ParseUint(timeout, 10, 31)
		if err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds")
		}
		collector.Timeout = time.Duration(milliseconds) * time.Millisecond
	}
	if collector.TLS, err = env.tls(); err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // without a host name the spans lack it
	ratio := c.SamplingRatio
	if ratio == nil && getenv("OTEL_TRACES_SAMPLER") == "" {
		ratio = new(1.0)
	}
	return &tracing.Options{
		Collector: collector, Service: service, Version: version, Instance: host, SamplingRatio: ratio, Log: log,
	}, nil
}

// exporterEnv reads OpenTelemetry's environment variables for exporters.
type exporterEnv func(string) string

// of returns a variable; the one for traces takes precedence over the general one.
func (env exporterEnv) of(name string) string {
	return strings.TrimSpace(cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_"+name), env("OTEL_EXPORTER_OTLP_"+name)))
}

// tracesAddress returns the URL for spans, or "" for none. The path is appended to a collector's URL, but not to a URL
// for traces.
func tracesAddress(endpoint string, env exporterEnv) (string, error) {
	address := env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if base := cmp.Or(endpoint, env("OTEL_EXPORTER_OTLP_ENDPOINT")); endpoint != "" || address == "" && base != "" {
		address = strings.TrimRight(base, "/") + "/v1/traces"
	}
	if address == "" {
		return "", nil
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not a URL; use one like http://collector:4318")
	}
	return address, nil
}

// headersOf parses a list of headers: comma-separated key=value pairs, percent-encoded.
func headersOf(list string) (http.Header, error) {
	header := http.Header{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" {
			// The value may be a secret.
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS cannot be read; write key=value pairs with commas between them, percent-encoded")
		}
		header.Add(name, value)
	}
	return header, nil
}

// tls returns the TLS configuration from the environment variables.
func (env exporterEnv) tls() (*tls.Config, error) {
	authorities, certificate, key := env.of("CERTIFICATE"), env.of("CLIENT_CERTIFICATE"), env.of("CLIENT_KEY")
	client := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if client.RootCAs, err = config.RootCAs("OTEL_EXPORTER_OTLP_CERTIFICATE", authorities); err != nil {
		return nil, err
	}
	if certificate == "" && key == "" {
		return client, nil
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: %w", err)
	}
	client.Certificates = []tls.Certificate{own}
	return client, nil
}
