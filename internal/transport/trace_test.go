// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/herald-social/herald/internal/tracing"
)

// TestTrace traces calls that carry secrets everywhere that a call can.
func TestTrace(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		handler http.HandlerFunc
		want    string
	}{
		"answered": {"the status is what the platform said", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Token", secret)
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, secret)
		}, "herald.action=publish herald.platform=x http.response.status_code=201"},
		"refused": {"it shows among the errors", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, secret, http.StatusForbidden)
		}, "error.type=403 herald.action=publish herald.platform=x http.response.status_code=403"},
		"lost": {"nobody knows what came of it", hangUp, "error.type=lost herald.action=publish herald.platform=x"},
		"redirect": {"an address that was handed out carries authority", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/"+secret, http.StatusFound)
		}, "herald.action=publish herald.platform=x http.response.status_code=302"},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := tracetest.NewSpanRecorder()
			tracer := tracing.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
			ctx, pass := tracer.Resume(t.Context(), "deliver", "", false)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				drain(t, r)
				for header := range r.Header {
					if lower := strings.ToLower(header); strings.HasPrefix(lower, "trace") || lower == "baggage" || strings.HasPrefix(lower, "b3") {
						t.Errorf("the platform learns of the trace by %s", header)
					}
				}
				tc.handler(w, r)
			}))
			defer server.Close()
			req := newRequest(t, http.MethodPost, server.URL+"/"+secret+"?access_token="+secret, "a caption "+secret)
			req.URL.User = url.UserPassword(secret, secret)
			_, err := New(Options{}).Do(ctx, Call{Platform: "x", Action: "publish"}, req)
			if err != nil && name != "lost" {
				t.Error(err)
			}
			pass.End()
			spans := recorder.Ended()
			if len(spans) != 2 || spans[0].SpanKind() != oteltrace.SpanKindClient || spans[0].Parent().SpanID() != spans[1].SpanContext().SpanID() {
				t.Fatalf("got %v", spans)
			}
			if everything := fmt.Sprintf("%+v", spans[0]); strings.Contains(everything, secret) || strings.Contains(everything, server.Listener.Addr().String()) {
				t.Errorf("the span tells an address or a secret: %s", everything)
			}
			if diff := cmp.Diff(tc.want, values(spans[0])); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// values are the attributes of a span, in order.
func values(span sdktrace.ReadOnlySpan) string {
	var all []string
	for _, a := range span.Attributes() {
		all = append(all, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
