// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/herald-social/herald/test/must"
)

const secret = "s3cr3t"

// collector is a collector of OTLP over HTTP.
type collector struct {
	*httptest.Server

	mu       sync.Mutex
	spans    []*tracepb.Span
	service  string
	requests int
}

// collect starts a collector that responds to each request with answer, and accepts its spans if answer is nil or
// returns true.
func collect(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request) (take bool)) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		c.requests++
		n := c.requests
		c.mu.Unlock()
		if answer != nil && !answer(n, w, r) {
			return
		}
		if r.Header.Get("Content-Encoding") == "gzip" {
			unpacked, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			if body, err = io.ReadAll(unpacked); err != nil {
				t.Error(err)
			}
		}
		c.collect(t, body)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) collect(t *testing.T, body []byte) {
	t.Helper()
	var data tracepb.TracesData
	if err := proto.Unmarshal(body, &data); err != nil {
		t.Error(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range data.ResourceSpans {
		for _, a := range from.Resource.Attributes {
			if a.Key == "service.name" {
				c.service = a.Value.GetStringValue()
			}
		}
		for _, scope := range from.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// start starts the delivery of all spans to an address.
func start(t *testing.T, to Collector, log *slog.Logger) *Provider {
	t.Helper()
	p, err := Start(t.Context(), Options{Collector: to, Service: "herald-manager", Version: "v1", Instance: "pod", SamplingRatio: new(1.0), Log: log})
	must.Succeed(t, err)
	return p
}

func TestDelivery(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		gzip     bool
		answer   func(n int, w http.ResponseWriter, r *http.Request) bool
		spans    int
		requests int
		says     string
	}{
		"plain": {"every collector accepts it", false, nil, 2, 1, ""},
		"gzip":  {"COMPRESSION enables it", true, nil, 2, 1, ""},
		"headers": {"collectors of companies want a token", false, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			return r.Header.Get("Authorization") == "Bearer "+secret && r.Header.Get("Content-Type") == "application/x-protobuf"
		}, 2, 1, ""},
		"busy once": {"a collector that is rolled out is back in a moment", false, func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return n > 1
		}, 2, 2, ""},
		"refused": {"a retry would fail as well", false, func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusUnauthorized)
			return false
		}, 0, 1, "HTTP status 401"},
		"redirect": {"the token is for the address that was configured", false, func(_ int, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			return false
		}, 0, 1, "HTTP status 307"},
	} {
		t.Run(name, func(t *testing.T) {
			server := collect(t, tc.answer)
			var log bytes.Buffer
			p := start(t, Collector{
				URL: server.URL + "/v1/traces?token=" + secret, Gzip: tc.gzip,
				Header: http.Header{"Authorization": {"Bearer " + secret}},
			}, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
			ctx, span := p.Tracer().Serve(t.Context(), sampled)
			_, child := Child(ctx, "store post")
			child.End()
			span.End()
			must.Succeed(t, p.Shutdown(t.Context()))
			server.mu.Lock()
			defer server.mu.Unlock()
			if len(server.spans) != tc.spans || server.requests != tc.requests {
				t.Errorf("%s: %d spans arrived in %d requests", tc.reason, len(server.spans), server.requests)
			}
			if tc.spans > 0 && server.service != "herald-manager" {
				t.Errorf("the spans came from %q", server.service)
			}
			if !strings.Contains(log.String(), tc.says) || (tc.says == "") != (log.Len() == 0) || strings.Contains(log.String(), secret) {
				t.Errorf("%s: the log contains %q", tc.reason, &log)
			}
		})
	}
}

// TestHangingCollector ends many more spans than the queue holds while the collector does not respond. Neither ending
// the spans nor ending the process waits for it.
func TestHangingCollector(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
	asked, release := make(chan struct{}, 1), make(chan struct{})
	server := collect(t, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		select {
		case asked <- struct{}{}:
		default:
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return false
	})
	defer close(release)
	p := start(t, Collector{URL: server.URL, Timeout: time.Hour}, slog.New(slog.DiscardHandler))
	tracer := p.Tracer()
	spans := func() {
		for range 10_000 {
			ctx, span := tracer.Serve(t.Context(), "")
			_, child := Child(ctx, "publish")
			child.End()
			span.End()
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		spans()
		<-asked
		spans()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("spans wait for the collector")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Shutdown(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the process waited: %v", err)
	}
}

// TestNoCollector delivers to an address without a server.
func TestNoCollector(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	var log bytes.Buffer
	p := start(t, Collector{URL: server.URL + "/" + secret, Timeout: 20 * time.Millisecond}, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		_, span := p.Tracer().Serve(t.Context(), "")
		span.End()
		if err := p.sdk.ForceFlush(t.Context()); err == nil {
			t.Error("a flush without a collector succeeded")
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("an error contains the address: %v", err)
		}
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
