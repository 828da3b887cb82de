// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/test/realplatforms"
)

// strangersPerMinute is the rate limit in these tests.
const strangersPerMinute = 3

// facing returns the API behind a proxy at 10.0.0.1, with one valid token, "good".
func facing(t *testing.T, behind error) (handler http.Handler, log *bytes.Buffer) {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	service := bridge.New(bridge.Config{
		Key: func(token string) (*v1alpha1.APIKey, error) {
			if token != "good" {
				return nil, access.ErrKeyUnknown
			}
			return &v1alpha1.APIKey{}, nil
		},
		Current: func() error { return behind },
		Used:    func(*v1alpha1.APIKey) {}, Owner: func(string) *v1alpha1.Team { return nil }, Index: postindex.New(), Clock: clock,
		Log: slog.New(slog.DiscardHandler),
	})
	api := rest.NewHandler(service, rest.Limits{Anonymous: limits.NewAnonymousGuard(strangersPerMinute, clock), Bodies: limits.NewBodyLimiter(limits.MaxBodyBytes)})
	site, err := newSite(api, nil, nil, "https://herald.example.com", realplatforms.All().Capabilities)
	if err != nil {
		t.Fatal(err)
	}
	log = &bytes.Buffer{}
	return &observer{
		next: site, metrics: newMetrics(prometheus.NewRegistry(), func() int { return 0 }), clock: clock,
		proxies: request.Proxies{netip.MustParsePrefix("10.0.0.1/32")}, log: slog.New(slog.NewTextHandler(log, nil)), lines: limits.NewLogLimiter(clock),
	}, log
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a stranger was read")
	return 0, errors.New("unread")
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	handler, log := facing(t, nil)
	ask := func(address, forwarded, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, rest.Prefix+"/posts", unread{t})
		r.RemoteAddr = address
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	for i, tt := range []struct {
		reason, address, forwarded, token string
		want                              int
	}{
		{"a bad key", "203.0.113.7:1", "", "bad", 401},
		{"no key", "203.0.113.7:2", "", "", 401},
		{"from another port", "203.0.113.7:3", "", "bad", 401},
		{"over the limit", "203.0.113.7:4", "", "bad", 429},
		{"named by the proxy", "203.0.113.7:4", "192.0.2.1", "bad", 429},
		{"a valid key from the same address", "203.0.113.7:5", "", "good", 403},
		{"another address", "203.0.113.8:1", "", "bad", 401},
		{"the same address, named by the proxy", "10.0.0.1:1", "203.0.113.7", "bad", 429},
		{"a client cannot hide its address behind others", "10.0.0.1:1", "192.0.2.1, 203.0.113.7", "bad", 429},
		{"another client of the same proxy", "10.0.0.1:1", "203.0.113.7, 192.0.2.1", "bad", 401},
		{"a network of IPv6", "10.0.0.1:1", "2001:db8::1", "bad", 401},
		{"an IPv6 network counts as one client", "10.0.0.1:1", "2001:db8::2", "bad", 401},
		{"visitor", "10.0.0.1:1", "2001:db8::3:4", "bad", 401},
		{"with many addresses", "10.0.0.1:1", "2001:db8::5", "bad", 429},
		{"unlike its neighbour", "10.0.0.1:1", "2001:db8:0:1::5", "bad", 401},
	} {
		got := ask(tt.address, tt.forwarded, tt.token)
		if got.Code != tt.want {
			t.Errorf("%d, %s: got %d %s, want %d", i, tt.reason, got.Code, got.Body, tt.want)
		}
		if refused := got.Code == http.StatusTooManyRequests; refused != (got.Header().Get("Retry-After") == "20") || refused != (got.Header().Get("Connection") == "close") ||
			refused != strings.Contains(got.Body.String(), `"RATE_LIMITED"`) || got.Header().Get("RateLimit-Limit") != "" {
			t.Errorf("%d, %s: %v %s", i, tt.reason, got.Header(), got.Body)
		}
	}
	lines := strings.Count(log.String(), "\n")
	for range 1000 {
		ask("203.0.113.7:9", "", "bad")
	}
	if more := strings.Count(log.String(), "\n") - lines; more > 0 {
		t.Errorf("rejected requests added %d log lines", more)
	}
	if !strings.Contains(log.String(), "remote=192.0.2.1\n") || !strings.Contains(log.String(), "remote=203.0.113.8:1\n") || strings.Contains(log.String(), "remote=10.0.0.1") {
		t.Errorf("the log does not show the clients: %s", log)
	}
}

// TestDoors sends more unauthenticated requests than the limit allows to each surface of a site without the web
// application.
func TestDoors(t *testing.T) {
	t.Parallel()
	handler, log := facing(t, nil)
	ask := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
		r.RemoteAddr = "203.0.113.7:1"
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	for _, tc := range []struct {
		reason, method, path string
		answered, beyond     int
	}{
		{"a public page", http.MethodGet, "/docs", 200, 429},
		{"public pages share one limit", http.MethodGet, "/openapi.json", 429, 429},
		{"unknown paths share it as well", http.MethodGet, "/nothing", 429, 429},
		{"with any method", http.MethodPut, "/docs", 429, 429},
		{"the API has its own limit", http.MethodGet, rest.Prefix + "/posts", 401, 429},
		{"at every path", http.MethodGet, rest.Prefix + "/nothing", 429, 429},
		{"load balancers probe from one address", http.MethodGet, "/health", 200, 200},
	} {
		for range strangersPerMinute {
			if w := ask(tc.method, tc.path); w.Code != tc.answered {
				t.Errorf("%s: got %d, want %d: %s", tc.reason, w.Code, tc.answered, w.Body)
			}
		}
		for range 100 {
			w := ask(tc.method, tc.path)
			if w.Code != tc.beyond {
				t.Fatalf("%s: got %d above the limit, want %d: %s", tc.reason, w.Code, tc.beyond, w.Body)
			}
			if refused := w.Code == http.StatusTooManyRequests; refused && (w.Header().Get("Retry-After") != "20" || w.Header().Get("Connection") != "close") {
				t.Fatalf("%s: got the headers %v", tc.reason, w.Header())
			}
		}
	}
	// One line for each combination of operation and status.
	if lines := strings.Count(log.String(), "\n"); lines > 10 {
		t.Errorf("%d lines of log for one address:\n%s", lines, log)
	}
}

// TestServerLog verifies that unauthenticated clients cannot fill the log through net/http's messages.
func TestServerLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	clk := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	log := slog.NewLogLogger(serverLog{slog.NewTextHandler(&out, nil), limits.NewLogLimiter(clk)}, slog.LevelWarn)
	for i := range 1000 {
		log.Print("http: URL query contains semicolon, which is no longer a supported separator")
		log.Printf("http: Accept error: accept tcp [::]:8080: too many open files; retrying in %dms", i)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 2 {
		t.Errorf("%d lines of log, want one of each kind:\n%s", lines, &out)
	}
	clk.SetTime(clk.Now().Add(time.Minute))
	log.Print("http: URL query contains semicolon, which is no longer a supported separator")
	if !strings.HasSuffix(out.String(), "notLogged=999\n") {
		t.Errorf("after a minute, the number of omitted lines is not logged:\n%s", &out)
	}
}

// TestNotCurrent verifies that all callers are rejected while the Kubernetes API does not respond, because a valid key
// may have been revoked and an unknown one may be new.
func TestNotCurrent(t *testing.T) {
	t.Parallel()
	handler, _ := facing(t, fmt.Errorf("%w for 6m0s", bridge.ErrBehind))
	for _, token := range []string{"good", "bad"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, rest.Prefix+"/connections", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "30" || !strings.Contains(w.Body.String(), `"INTERNAL_ERROR"`) ||
			!strings.Contains(w.Body.String(), "cannot verify API keys") {
			t.Errorf("%s: got %d %s", token, w.Code, w.Body)
		}
	}
}

// TestLongRequests verifies that client input is truncated in the log and in responses.
func TestLongRequests(t *testing.T) {
	t.Parallel()
	const most = 1 << 10
	for name, tc := range map[string]struct{ reason, method, path, token string }{
		"an unknown page":           {"the response contains the method and path", http.MethodGet, "/" + strings.Repeat("%01", 5000), ""},
		"an unknown operation":      {"the REST API's own 404, with a valid key", http.MethodGet, rest.Prefix + "/" + strings.Repeat("%01", 5000), "good"},
		"an unknown method":         {"the response contains the method", strings.Repeat("A", 5000), "/docs", ""},
		"an unknown method of REST": {"with its path", strings.Repeat("A", 5000), rest.Prefix + "/posts/" + strings.Repeat("%c3%a4", 1000), "good"},
		"no key":                    {"a long path", http.MethodGet, rest.Prefix + "/" + strings.Repeat("%01", 5000), ""},
		"a long query":              {"the log omits the query", http.MethodGet, rest.Prefix + "/posts?page=" + strings.Repeat("9x", 5000), "good"},
		"a bad query":               {"the query cannot be parsed", http.MethodGet, rest.Prefix + "/posts?page=%zz" + strings.Repeat("9x", 5000), "good"},
		"a platform":                {"an unknown platform", http.MethodGet, rest.Prefix + "/posts?platform=" + strings.Repeat("9x", 5000), "good"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler, log := facing(t, nil)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, http.NoBody)
			r.Method = tc.method
			r.Header.Set("Authorization", "Bearer "+tc.token)
			r.Header.Set("X-Request-Id", strings.Repeat("i", 5000))
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if log.Len() > 2*most || w.Body.Len() > 2*most || log.Len() == 0 {
				t.Errorf("%s: %d bytes of log, a response of %d: %.300s %.300s", tc.reason, log.Len(), w.Body.Len(), log, w.Body)
			}
		})
	}
}
