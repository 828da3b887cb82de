// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/herald-social/herald/apiserver"
)

// TestProbe checks that the response contains only the result, and that the log contains the cause once, however many
// requests there are.
func TestProbe(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var cause error
	handler := apiserver.ProbeHandler(slog.New(slog.NewTextHandler(&out, nil)), apiserver.ProbeChecks{
		Alive: func(*http.Request) error { return nil },
		Ready: func(*http.Request) error { return cause },
	})
	gone, leave := context.WithCancel(t.Context())
	leave()
	silent, unfilled := errors.New("nothing was heard of 10.96.0.1"), errors.New("the caches are not filled yet")
	for _, tt := range []struct {
		reason, path string
		cause        error
		status       int
		body, logged string
		gone         bool
	}{
		{"all is well, which is no news", "/readyz", nil, 200, "ok\n", "", false},
		{"a stranger learns nothing of the network", "/readyz", silent, 503, "not ready\n", "10.96.0.1", false},
		{"the log is not a stranger's to fill", "/readyz", silent, 503, "not ready\n", "", false},
		{"nor does asking for more help", "/readyz?verbose", silent, 503, "not ready\n", "", false},
		{"or for less", "/readyz?exclude=ready", silent, 503, "not ready\n", "", false},
		{"there is nothing below", "/readyz/started", silent, 404, "404 page not found\n", "", false},
		{"another cause is news", "/readyz", unfilled, 503, "not ready\n", "caches are not filled", false},
		{"each probe is one of its own", "/livez", unfilled, 200, "ok\n", "", false},
		{"whoever leaves before the answer is no news", "/readyz", silent, 503, "not ready\n", "", true},
		{"it ended", "/readyz", nil, 200, "ok\n", "succeeds again", false},
		{"and stays so", "/readyz", nil, 200, "ok\n", "", false},
		{"the same again is news", "/readyz", unfilled, 503, "not ready\n", "caches are not filled", false},
	} {
		cause = tt.cause
		out.Reset()
		ctx := t.Context()
		if tt.gone {
			ctx = gone
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, tt.path, http.NoBody))
		if w.Code != tt.status || w.Body.String() != tt.body {
			t.Errorf("%s: answered %d %q, want %d %q", tt.reason, w.Code, w.Body, tt.status, tt.body)
		}
		if (out.Len() > 0) != (tt.logged != "") || !strings.Contains(out.String(), tt.logged) || strings.Count(out.String(), "\n") > 1 {
			t.Errorf("%s: logged %q, want one line with %q", tt.reason, &out, tt.logged)
		}
	}
}
