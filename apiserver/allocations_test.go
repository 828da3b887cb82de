// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
)

// page is the number of posts on the measured page.
const page = 20

// Unlike timings, allocation counts are nearly the same on every machine, and collecting the garbage of requests takes
// most of the apiserver's CPU time. The counts include everything between the connection and the Kubernetes API:
// authentication, limits, validation, the client, the index, encoding and metrics.
var _ = Describe("A request's budget of allocations", Serial, func() {
	DescribeTable("is kept", func(ctx SpecContext, most, kib uint64, status int, request func(ctx context.Context, id string, i int) *http.Request) {
		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		var id string
		for i := range page {
			id = t.create(ctx, text("x", fmt.Sprintf("Post %d", i), inAnHour())).ID
		}
		objects, bytes := uint64(1<<63), uint64(1<<63)
		for batch := range 3 { // the minimum, because other goroutines also allocate
			const requests = 10
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range requests {
				r := request(ctx, id, batch*requests+i)
				r.Header.Set("Authorization", "Bearer "+t.token)
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				instance.server.Handler().ServeHTTP(w, r)
				Expect(w.Code).To(Equal(status), "%s", w.Body)
			}
			runtime.ReadMemStats(&after)
			objects = min(objects, (after.Mallocs-before.Mallocs)/requests)
			bytes = min(bytes, (after.TotalAlloc-before.TotalAlloc)/requests)
		}
		AddReportEntry("allocations", fmt.Sprintf("%d objects, %d bytes", objects, bytes))
		Expect(objects).To(BeNumerically("<=", most), "the budget is %d objects for a request; profile it with BENCH=B1,B4 BENCH_PPROF=DIR make bench", most)
		Expect(bytes>>10).To(BeNumerically("<=", kib), "the budget is %d KiB for a request; profile it with BENCH=B1,B4 BENCH_PPROF=DIR make bench", kib)
	},
		Entry("for a creation, which is one request to the Kubernetes API", uint64(600), uint64(52), http.StatusCreated, func(ctx context.Context, _ string, i int) *http.Request {
			return httptest.NewRequestWithContext(ctx, http.MethodPost, base+"/posts", strings.NewReader(text("x", fmt.Sprintf("Another post %d", i), inAnHour())))
		}),
		Entry("for a page of a list from the index", uint64(66), uint64(15), http.StatusOK, func(ctx context.Context, _ string, _ int) *http.Request {
			return httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/posts?page=1", base), http.NoBody)
		}),
		Entry("for a read of one post, which is one request to the Kubernetes API", uint64(320), uint64(32), http.StatusOK, func(ctx context.Context, id string, _ int) *http.Request {
			return httptest.NewRequestWithContext(ctx, http.MethodGet, base+"/posts/"+id, http.NoBody)
		}),
	)
})
