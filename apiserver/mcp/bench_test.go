// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/rest"
)

// BenchmarkListPosts compares a page of 20 posts fetched through REST with the same page fetched through a tool, and
// with the SDK's cost of a no-op call. The network is excluded.
func BenchmarkListPosts(b *testing.B) {
	index := postindex.New()
	for i := range 1000 {
		index.Upsert(namespace, postindex.Summary{
			ID: fmt.Sprintf("pk3v5q2w7n4x6r2t4y6m3s5%03d", i), Title: "We launched something new, and", Status: v1alpha1.PhaseScheduled, Category: v1alpha1.CategoryText,
			Platforms: []postindex.PlatformStatus{{Platform: "x", Status: "scheduled"}, {Platform: "threads", Status: "scheduled"}},
			DisplayAt: time.Unix(int64(i), 0),
		}, uint64(i+1))
	}
	service := bridge.New(bridge.Config{
		Key: func(string) (*v1alpha1.APIKey, error) {
			key := &v1alpha1.APIKey{}
			key.Namespace, key.Name = namespace, "k"
			return key, nil
		},
		Used: func(*v1alpha1.APIKey) {}, Index: index, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	})
	api := rest.NewHandler(service, rest.Limits{})
	agents, err := New(Options{
		Service: service, REST: api, SiteURL: "https://herald.example.com", Capabilities: capabilities,
		Tokens: func(_ context.Context, token string) (bridge.Caller, error) { return service.Authenticate(token) },
	})
	if err != nil {
		b.Fatal(err)
	}
	latest := strings.Replace(callTool("list_posts", `{}`), `"params":{`,
		`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`, 1)
	for _, bench := range []struct {
		name    string
		handler http.Handler
		method  string
		path    string
		body    string
		header  []string
	}{
		{"REST", api, http.MethodGet, "/api/v1/posts", "", nil},
		{"MCP", agents, http.MethodPost, Path, callTool("list_posts", `{}`), nil},
		{"MCPLatest", agents, http.MethodPost, Path, latest, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "list_posts"}},
		{"Ping", agents, http.MethodPost, Path, ping, nil},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			before := processor()
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), bench.method, bench.path, strings.NewReader(bench.body))
				r.Header.Set("Authorization", "Bearer t")
				r.Header.Set("Content-Type", "application/json")
				for i := 0; i+1 < len(bench.header); i += 2 {
					r.Header.Set(bench.header[i], bench.header[i+1])
				}
				w := httptest.NewRecorder()
				bench.handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"isError":true`) {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
			b.ReportMetric(float64(processor()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// processor returns this process's CPU time, including garbage collection.
func processor() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
