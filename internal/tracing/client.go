// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Collector is the destination of spans, by OTLP over HTTP.
type Collector struct {
	// URL is the full URL, which usually ends in /v1/traces.
	URL string
	// Header is sent with each request. It may contain a secret.
	Header http.Header
	// Timeout limits delivering one batch, including retries (default DefaultTimeout).
	Timeout time.Duration
	// Gzip compresses requests.
	Gzip bool
	// TLS holds the trusted authorities and the client certificate. If nil, the system's authorities are used.
	TLS *tls.Config
	// Proxy is as in http.Transport.
	Proxy func(*http.Request) (*url.URL, error)
}

// DefaultTimeout is OpenTelemetry's default for OTEL_EXPORTER_OTLP_TIMEOUT.
const DefaultTimeout = 10 * time.Second

// tries is the backoff for a batch that the collector temporarily rejects, as OTLP requires (OTLP 1.x, "OTLP/HTTP
// Response"). The timeout ends it.
var tries = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6}

// longestAnswer is the maximum number of bytes of a response that are read, so that its connection can be reused.
const longestAnswer = 64 << 10

// client delivers spans. It implements otlptrace.Client. OpenTelemetry's own HTTP client is not used because it links
// gRPC, which adds 7 MiB of unused code (open-telemetry/opentelemetry-go#2579).
type client struct {
	Collector

	http *http.Client
}

func newClient(c Collector) *client {
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	return &client{Collector: c, http: &http.Client{
		Transport: &http.Transport{
			Proxy: c.Proxy, TLSClientConfig: c.TLS, ForceAttemptHTTP2: true,
			MaxIdleConns: 2, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: c.Timeout, MaxResponseHeaderBytes: longestAnswer,
		},
		// The header may contain a secret, which is only for the configured URL.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Start implements otlptrace.Client.
func (*client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// TracesData has the same encoding as the request of OTLP's service, whose package links gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	if c.Gzip {
		body = compressed(body)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var again bool
	ended := wait.ExponentialBackoffWithContext(ctx, tries, func(ctx context.Context) (done bool, _ error) {
		again, err = c.send(ctx, body)
		return !again, nil
	})
	return cmp.Or(err, ended) // that the backoff ended is less informative than the last attempt's error
}

func (c *client) send(ctx context.Context, body []byte) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the address of the collector is not a URL")
	}
	maps.Copy(request.Header, c.Header)
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", "herald")
	if c.Gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := c.http.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL, which may contain a token
		}
		return true, fmt.Errorf("the collector could not be reached: %w", err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, longestAnswer)) // so that the connection can be reused
	switch status := answer.StatusCode; status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, fmt.Errorf("the collector answered with HTTP status %d", status)
	default:
		if status/100 != 2 {
			return false, fmt.Errorf("the collector refused spans with HTTP status %d; check its address and the headers", status)
		}
		return false, nil
	}
}

func compressed(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a bytes.Buffer accepts everything
	_ = w.Close()
	return out.Bytes()
}
