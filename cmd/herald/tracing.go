// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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
	"github.com/herald-social/herald/internal/tracing"
)

// lastSpans bounds how long a process that was told to stop waits for its last spans to
// be taken.
const lastSpans = 3 * time.Second

// startTracing begins to deliver traces, if an endpoint is set, and returns what begins
// them and what ends the delivery. What is wrong in a variable of the environment
// is logged, and leaves the process without traces: that must not keep it from
// publishing.
func startTracing(ctx context.Context, c *configv1alpha1.Tracing, service string, log *slog.Logger) (*tracing.Tracer, func()) {
	none := func() {}
	options, err := tracingOptions(c, service, log, os.Getenv)
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
			return // it ends by itself, as a leader that lost its lease does, and does so at once
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.WarnContext(ctx, "Traces ended early", "error", err)
		}
	}
}

// tracingOptions are those of the file, and where that says nothing, of OpenTelemetry's
// variables, as its specification describes them; nil without an endpoint.
func tracingOptions(c *configv1alpha1.Tracing, service string, log *slog.Logger, getenv func(string) string) (*tracing.Options, error) {
	env := exporterEnv(getenv)
	address, err := tracesAddress(c.Endpoint, env)
	if err != nil || address == "" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, err
	}
	if protocol := env.of("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %s, and Herald speaks http/protobuf alone; name that, and the collector's port for it, usually 4318", protocol)
	}
	collector := tracing.Collector{URL: address, Proxy: http.ProxyFromEnvironment, Gzip: env.of("COMPRESSION") == "gzip"}
	if collector.Header, err = headersOf(env.of("HEADERS")); err != nil {
		return nil, err
	}
	if timeout := env.of("TIMEOUT"); timeout != "" {
		milliseconds, err := strconv.ParseUint(timeout, 10, 31)
		if err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_TIMEOUT is no number of milliseconds")
		}
		collector.Timeout = time.Duration(milliseconds) * time.Millisecond
	}
	if collector.TLS, err = env.tls(); err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // without one the spans lack it
	ratio := c.SamplingRatio
	if ratio == nil && getenv("OTEL_TRACES_SAMPLER") == "" {
		ratio = new(1.0)
	}
	return &tracing.Options{
		Collector: collector, Service: service, Version: version, Instance: host, SamplingRatio: ratio, Log: log,
	}, nil
}

// exporterEnv reads OpenTelemetry's variables for exporters.
type exporterEnv func(string) string

// of returns a variable: the one for traces before the one for everything.
func (env exporterEnv) of(name string) string {
	return strings.TrimSpace(cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_"+name), env("OTEL_EXPORTER_OTLP_"+name)))
}

// tracesAddress returns where spans are posted; "" for nowhere. The path is added to the
// address of a collector, and not to an address for traces.
func tracesAddress(endpoint string, env exporterEnv) (string, error) {
	address := env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if base := cmp.Or(endpoint, env("OTEL_EXPORTER_OTLP_ENDPOINT")); endpoint != "" || address == "" && base != "" {
		address = strings.TrimRight(base, "/") + "/v1/traces"
	}
	if address == "" {
		return "", nil
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no address; write one like http://collector:4318")
	}
	return address, nil
}

// headersOf reads a list of headers: key=value pairs with commas between, percent-encoded.
func headersOf(list string) (http.Header, error) {
	header := http.Header{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" {
			// What is in it may be a secret.
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS cannot be read; write key=value pairs with commas between them, percent-encoded")
		}
		header.Add(name, value)
	}
	return header, nil
}

// tls is what the variables say of certificates.
func (env exporterEnv) tls() (*tls.Config, error) {
	authorities, certificate, key := env.of("CERTIFICATE"), env.of("CLIENT_CERTIFICATE"), env.of("CLIENT_KEY")
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if config.RootCAs, err = rootsOf("OTEL_EXPORTER_OTLP_CERTIFICATE", authorities); err != nil {
		return nil, err
	}
	if certificate == "" && key == "" {
		return config, nil
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: %w", err)
	}
	config.Certificates = []tls.Certificate{own}
	return config, nil
}
