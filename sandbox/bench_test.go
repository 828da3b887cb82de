// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/herald-social/herald/sandbox"
)

// BenchmarkPublish measures the handler alone: what the sandbox adds to a benchmark of a publisher.
func BenchmarkPublish(b *testing.B) {
	server, err := sandbox.New(sandbox.Options{StateDir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	var n atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			body := fmt.Sprintf(`{"text":"Post number %d is out: https://example.com/%d"}`, n.Add(1), n.Load())
			req := httptest.NewRequest(http.MethodPost, "/x/2/tweets", strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer "+demoAccess)
			req.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			server.ServeHTTP(w, req)
			if w.Code != http.StatusCreated {
				b.Fatalf("%d %s", w.Code, w.Body)
			}
		}
	})
}

// BenchmarkTimeline reads a page of an account with many posts.
func BenchmarkTimeline(b *testing.B) {
	server, err := sandbox.New(sandbox.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	ask := func(method, path, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, path, strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+demoAccess)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, req)
		return w
	}
	for i := range 50_000 {
		if w := ask(http.MethodPost, "/x/2/tweets", fmt.Sprintf(`{"text":"Post number %d"}`, i)); w.Code != http.StatusCreated {
			b.Fatal(w.Code)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if w := ask(http.MethodGet, "/x/2/users/"+demoID+"/tweets?max_results=5", ""); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
