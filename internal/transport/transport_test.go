// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/test/must"
)

const secret = "s3cr3t"

func newRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	var r io.Reader = http.NoBody
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, r)
	must.Succeed(t, err)
	req.Header.Set("Authorization", "Bearer "+secret)
	return req
}

// drain reads a request to its end, so that it certainly arrived.
func drain(t *testing.T, r *http.Request) {
	t.Helper()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Errorf("cannot read the request: %v", err)
	}
}

// hangUp closes the connection of a request without a response.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func TestDo(t *testing.T) {
	type want struct {
		Status   int
		Body     string
		Sent     bool
		ErrStat  int
		Cause    error
		Arrivals int32
	}
	for name, tc := range map[string]struct {
		reason  string
		handler http.HandlerFunc
		call    Call
		want    want
	}{
		"answer": {
			reason: "a response is returned completely",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
				fmt.Fprint(w, "yes")
			},
			want: want{Status: 201, Body: "yes", Arrivals: 1},
		},
		"error status": {
			reason:  "a rejection is a response, not a transport error",
			handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
			want:    want{Status: 403, Arrivals: 1},
		},
		"redirect": {
			reason: "following a 307 would send the body a second time",
			handler: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			},
			want: want{Status: 307, Arrivals: 1},
		},
		"hang up": {
			reason:  "a connection closed without a response leaves the outcome unknown, and the call is not retried",
			handler: hangUp,
			want:    want{Sent: true, Cause: io.EOF, Arrivals: 1},
		},
		"silence": {
			reason:  "the timeout of the call ends it, after it was sent",
			handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			call:    Call{Timeout: 30 * time.Millisecond},
			want:    want{Sent: true, Cause: context.DeadlineExceeded, Arrivals: 1},
		},
		"longest body": {
			reason:  "the bound itself is allowed",
			handler: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "12345678") },
			call:    Call{MaxBody: 8},
			want:    want{Status: 200, Body: "12345678", Arrivals: 1},
		},
		"body too long": {
			reason:  "a response above the limit is an error",
			handler: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "123456789") },
			call:    Call{MaxBody: 8},
			want:    want{Sent: true, ErrStat: 200, Cause: ErrBodyTooLarge, Arrivals: 1},
		},
		"cut body": {
			reason: "a truncated response has a status",
			handler: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "100")
				w.WriteHeader(http.StatusCreated)
				fmt.Fprint(w, "{")
				hangUp(w, r)
			},
			want: want{Sent: true, ErrStat: 201, Cause: io.ErrUnexpectedEOF, Arrivals: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var arrivals atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				arrivals.Add(1)
				drain(t, r)
				tc.handler(w, r)
			}))
			defer server.Close()

			req := newRequest(t, http.MethodPost, server.URL+"/publish?token="+secret, "text")
			resp, err := New(Options{}).Do(t.Context(), tc.call, req)

			got := want{Arrivals: arrivals.Load()}
			if resp != nil {
				got.Status, got.Body = resp.Status, string(resp.Body)
			}
			if failure, ok := errors.AsType[*Error](err); ok {
				got.Sent, got.ErrStat = failure.Sent, failure.Status
				if errors.Is(err, tc.want.Cause) {
					got.Cause = tc.want.Cause
				}
				if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "/publish") {
					t.Errorf("the error contains the address or a secret: %v", err)
				}
			}
			sameError := cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) && errors.Is(b, a) })
			if diff := cmp.Diff(tc.want, got, sameError); diff != "" {
				t.Errorf("%s (-want +got):\n%s\nerror: %v", tc.reason, diff, err)
			}
		})
	}
}

func TestDoWithoutConnection(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	refused := "http://" + listener.Addr().String()
	must.Succeed(t, listener.Close())
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	for name, tc := range map[string]struct {
		reason string
		ctx    context.Context
		url    string
	}{
		"refused":       {"the port is closed", t.Context(), refused},
		"no TLS":        {"the peer does not speak TLS", t.Context(), strings.Replace(plain.URL, "http:", "https:", 1)},
		"no such host":  {"the name does not exist", t.Context(), "http://herald.invalid"},
		"ended context": {"the context ended before a connection was opened", ended, plain.URL},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{}).Do(tc.ctx, Call{Timeout: 5 * time.Second}, newRequest(t, http.MethodPost, tc.url, "text"))
			if failure, ok := errors.AsType[*Error](err); !ok || failure.Sent {
				t.Errorf("%s: got %#v, want an *Error with Sent=false", tc.reason, err)
			}
		})
	}
}

func TestDoRefusesIdempotencyKeys(t *testing.T) {
	for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		req := newRequest(t, http.MethodPost, "http://herald.invalid", "text")
		req.Header.Set(header, "1")
		if _, err := New(Options{}).Do(t.Context(), Call{}, req); !errors.Is(err, ErrReplayable) {
			t.Errorf("%s: got %v, want ErrReplayable because net/http would repeat the call", header, err)
		}
	}
}

func TestIdempotencyKeyNeedsABody(t *testing.T) {
	for name, body := range map[string]io.ReadCloser{"none": nil, "empty": http.NoBody} {
		req := newRequest(t, http.MethodPost, "http://herald.invalid", "")
		req.Body = body
		if _, err := New(Options{}).Do(t.Context(), Call{IdempotencyKey: "1"}, req); !errors.Is(err, ErrReplayable) {
			t.Errorf("%s: got %v, want ErrReplayable: net/http sends a request without a body again", name, err)
		}
	}
}

// A server may close an idle connection at any time. A call that then finds it closed must not be sent again if it may
// have been read, with or without an idempotency key.
func TestDoSendsOnceOverAReusedConnection(t *testing.T) {
	for name, call := range map[string]Call{"without a key": {}, "with a key": {IdempotencyKey: "1"}} {
		t.Run(name, func(t *testing.T) { sendOverAReusedConnection(t, call) })
	}
}

func sendOverAReusedConnection(t *testing.T, call Call) {
	t.Helper()
	var arrivals atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		drain(t, r)
		if got := r.Header.Get("Idempotency-Key"); got != call.IdempotencyKey {
			t.Errorf("the key arrived as %q", got)
		}
		if arrivals.Add(1) > 1 {
			hangUp(w, r)
		}
	}))
	defer server.Close()
	client := New(Options{})
	if _, err := client.Do(t.Context(), call, newRequest(t, http.MethodPost, server.URL, "one")); err != nil {
		t.Fatal(err)
	}
	_, err := client.Do(t.Context(), call, newRequest(t, http.MethodPost, server.URL, "two"))
	if failure, ok := errors.AsType[*Error](err); !ok || !failure.Sent {
		t.Errorf("got %v, want an *Error with Sent=true", err)
	}
	if got := arrivals.Load(); got != 2 {
		t.Errorf("%d requests arrived for two calls", got)
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	client := New(Options{Registerer: registry})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			hangUp(w, r)
		}
	}))
	defer server.Close()
	call := Call{Platform: "x", Action: "publish"}
	for _, req := range []*http.Request{
		newRequest(t, http.MethodPost, server.URL, ""),
		newRequest(t, http.MethodDelete, server.URL, ""),
		newRequest(t, http.MethodDelete, server.URL, ""),
		newRequest(t, http.MethodPost, "http://herald.invalid", ""),
	} {
		if _, err := client.Do(t.Context(), call, req); err == nil && req.URL.Host == "herald.invalid" {
			t.Fatal("an impossible host responded")
		}
	}

	const want = `
# HELP herald_platform_requests_total Calls to platforms, by purpose and HTTP status of the answer (lost: sent without an answer; not_sent: no connection).
# TYPE herald_platform_requests_total counter
herald_platform_requests_total{action="publish",code="200",platform="x"} 1
herald_platform_requests_total{action="publish",code="lost",platform="x"} 2
herald_platform_requests_total{action="publish",code="not_sent",platform="x"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "herald_platform_requests_total"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(client.metrics.duration); n != 1 {
		t.Errorf("%d duration series, want 1", n)
	}
}

// TestTrace traces calls that carry secrets in every place where a call can contain one.
func TestTrace(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		handler http.HandlerFunc
		want    string
	}{
		"answered": {"the status is the platform's", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Token", secret)
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, secret)
		}, "herald.action=publish herald.platform=x http.response.status_code=201"},
		"refused": {"a refusal shows among the errors", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, secret, http.StatusBadRequest)
		}, "error.type=400 herald.action=publish herald.platform=x http.response.status_code=400"},
		"lost in part": {"the status arrived, but not the body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, secret)
		}, "error.type=lost herald.action=publish herald.platform=x http.response.status_code=200"},
		"lost": {"the outcome is unknown", hangUp, "error.type=lost herald.action=publish herald.platform=x"},
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
						t.Errorf("the platform receives the trace by %s", header)
					}
				}
				tc.handler(w, r)
			}))
			defer server.Close()
			req := newRequest(t, http.MethodPost, server.URL+"/"+secret+"?access_token="+secret, "a caption "+secret)
			req.URL.User = url.UserPassword(secret, secret)
			_, err := New(Options{}).Do(ctx, Call{Platform: "x", Action: "publish"}, req)
			if err != nil && !strings.HasPrefix(name, "lost") {
				t.Error(err)
			}
			pass.End()
			spans := recorder.Ended()
			if len(spans) != 2 || spans[0].SpanKind() != oteltrace.SpanKindClient || spans[0].Parent().SpanID() != spans[1].SpanContext().SpanID() {
				t.Fatalf("got %v", spans)
			}
			if everything := fmt.Sprintf("%+v", spans[0]); strings.Contains(everything, secret) || strings.Contains(everything, server.Listener.Addr().String()) {
				t.Errorf("the span contains an address or a secret: %s", everything)
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
