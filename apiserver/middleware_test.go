// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest"
)

// observe serves handler behind the observer, as every request is served.
func observe(t *testing.T, handler http.HandlerFunc) (server *httptest.Server, log *bytes.Buffer, m *metrics) {
	t.Helper()
	m = newMetrics(prometheus.NewRegistry(), func() int { return 0 })
	log = &bytes.Buffer{}
	server = httptest.NewServer(&observer{
		next: handler, metrics: m, clock: clock.RealClock{}, log: slog.New(slog.NewJSONHandler(log, nil)), lines: limits.NewLogLimiter(clock.RealClock{}),
	})
	t.Cleanup(server.Close)
	return server, log, m
}

func get(t *testing.T, url string, header ...string) (status int, body string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	// The default transport would lose its connection whenever a parallel test closes its server.
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	return response.StatusCode, string(b), err
}

// TestFailureOfATool verifies that errors sent to agents with status 200 count toward the error alert.
func TestFailureOfATool(t *testing.T) {
	t.Parallel()
	server, _, m := observe(t, func(w http.ResponseWriter, r *http.Request) {
		info := request.From(r.Context())
		info.Operation = "mcp create_post"
		if r.URL.Path == "/failing" {
			info.Err = errors.New("the Kubernetes API is unavailable")
		}
		_, _ = w.Write([]byte("{}")) // ignore: the test may be over
	})
	for path, code := range map[string]string{"/failing": "500", "/fine": "200"} {
		if status, _, err := get(t, server.URL+path); err != nil || status != http.StatusOK {
			t.Fatalf("got %d, %v", status, err)
		}
		if n := testutil.ToFloat64(m.requests.WithLabelValues("mcp create_post", code)); n != 1 {
			t.Errorf("%s is counted %v times with %s", path, n, code)
		}
	}
}

func TestPanicReturnsAnError(t *testing.T) {
	t.Parallel()
	server, log, m := observe(t, func(http.ResponseWriter, *http.Request) { panic("secret detail") })
	status, body, err := get(t, server.URL+"/api/v1/posts", requestIDHeader, "id-17")
	if err != nil || status != http.StatusInternalServerError {
		t.Fatalf("got %d, %v", status, err)
	}
	if !strings.HasPrefix(body, `{"error":{"code":"INTERNAL_ERROR","message":"`) || !strings.Contains(body, "id-17") || strings.Contains(body, "secret") {
		t.Errorf("got %s", body)
	}
	server.Close()
	if line := log.String(); !strings.Contains(line, "secret detail") || !strings.Contains(line, "middleware_test.go") ||
		!strings.Contains(line, `"requestId":"id-17"`) || !strings.Contains(line, `"level":"ERROR"`) {
		t.Errorf("the log lacks the panic's location: %s", line)
	}
	if n := testutil.ToFloat64(m.requests.WithLabelValues(noOperation, "500")); n != 1 {
		t.Errorf("counted %v times", n)
	}
	if n := testutil.ToFloat64(m.inFlight); n != 0 {
		t.Errorf("%v requests are still under way", n)
	}
}

func TestPanicAfterAnswerCutsTheConnection(t *testing.T) {
	t.Parallel()
	server, log, _ := observe(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("a", 1<<16))
		panic("too late")
	})
	if status, _, err := get(t, server.URL); err == nil {
		t.Errorf("an aborted response looks complete: %d", status)
	}
	server.Close()
	if !strings.Contains(log.String(), "too late") {
		t.Errorf("the log lacks the panic: %s", log)
	}
}

func TestAbortIsPreserved(t *testing.T) {
	t.Parallel()
	server, log, _ := observe(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if status, body, err := get(t, server.URL); err == nil {
		t.Errorf("got %d %s", status, body)
	}
	server.Close()
	if strings.Contains(log.String(), `"level":"ERROR"`) {
		t.Errorf("an abort is no error: %s", log)
	}
}

func TestInternalErrorHasNoDetails(t *testing.T) {
	t.Parallel()
	server, log, _ := observe(t, func(w http.ResponseWriter, r *http.Request) {
		rest.WriteInternal(r.Context(), w, errors.New("etcd at 10.0.0.7 is down"))
	})
	_, body, err := get(t, server.URL)
	if err != nil || strings.Contains(body, "etcd") {
		t.Errorf("got %s, %v", body, err)
	}
	server.Close()
	if !strings.Contains(log.String(), "10.0.0.7") {
		t.Errorf("the log lacks the cause: %s", log)
	}
}

func TestLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	server, log, m := observe(t, func(w http.ResponseWriter, r *http.Request) {
		info := request.From(r.Context())
		info.Operation, info.Namespace, info.Key = "getPost", "team-a", "ci"
		w.WriteHeader(http.StatusTeapot)
	})
	if _, _, err := get(t, server.URL+"/p?token=hrld_query", "Authorization", "Bearer hrld_header", "Cookie", "session=hrld_cookie"); err != nil {
		t.Fatal(err)
	}
	server.Close()
	line := log.String()
	if strings.Contains(line, "hrld_") {
		t.Errorf("the log contains a secret: %s", line)
	}
	for _, want := range []string{
		`"method":"GET"`, `"path":"/p"`, `"status":418`, `"operation":"getPost"`, `"namespace":"team-a"`, `"key":"ci"`, `"requestId":`,
	} {
		if !strings.Contains(line, want) {
			t.Errorf("the log lacks %s: %s", want, line)
		}
	}
	if n := testutil.ToFloat64(m.requests.WithLabelValues("getPost", "418")); n != 1 {
		t.Errorf("counted %v times", n)
	}
}
