// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/test/logtest"
)

var _ = Describe("traces", Ordered, func() {
	const (
		clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
		traceparent = "00-" + clientTrace + "-00f067aa0ba902b7-01"
	)
	var (
		t        *team
		own      *running
		recorder *tracetest.SpanRecorder
		log      *logtest.Log
		header   map[string]string
	)
	BeforeAll(func(ctx context.Context) {
		recorder, log = tracetest.NewSpanRecorder(), &logtest.Log{}
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		own = start(restricted, func(c *apiserver.Config) {
			c.Tracer = tracing.NewTracer(provider)
			c.Log = slog.New(tracing.LogHandler(slog.NewJSONHandler(log, nil)))
		})
		DeferCleanup(func() { own.stop() })
		t = newTeam(ctx)
		t.connect(ctx, "good-x", v1alpha1.PlatformX)
		header = map[string]string{"Authorization": "Bearer " + t.token, "traceparent": traceparent, "tracestate": "vendor=hunter2", "baggage": "user=hunter2"}
		Eventually(func() int { return do(ctx, own, "GET", base+"/posts", "", header).status }).Should(Equal(200))
	})

	spans := func(name string) func() []sdktrace.ReadOnlySpan {
		return func() (found []sdktrace.ReadOnlySpan) {
			for _, span := range recorder.Ended() {
				if span.Name() == name {
					found = append(found, span)
				}
			}
			return found
		}
	}

	It("continue the client's trace, and continue in the post", func(ctx context.Context) {
		var created reply
		Eventually(func() int {
			created = do(ctx, own, "POST", base+"/posts?caption=hunter2", text("good-x", "a caption of hunter2"), header)
			return created.status
		}).Should(Equal(201), func() string { return created.body })
		Eventually(spans("createPost")).ShouldNot(BeEmpty())
		request := spans("createPost")()[len(spans("createPost")())-1]
		Expect(request.SpanContext().TraceID().String()).To(Equal(clientTrace))
		Expect(request.SpanContext().TraceState().Len()).To(BeZero())
		Expect(created.header.Get("traceparent")).To(BeEmpty())

		id := as[postBody](created).Data.ID
		carried := t.stored(ctx, id).Annotations[v1alpha1.TraceparentAnnotation]
		Expect(carried).To(Equal(fmt.Sprintf("00-%s-%s-01", clientTrace, request.SpanContext().SpanID())))

		Expect(spans("check connection")()).NotTo(BeEmpty())
		Expect(spans("store post")()).NotTo(BeEmpty())
		for _, span := range recorder.Ended() {
			Expect(fmt.Sprintf("%+v", span)).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring(t.token)), span.Name())
		}
		Eventually(log.String).Should(ContainSubstring(`"trace_id":"` + clientTrace + `"`))
		Expect(log.String()).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring(t.token)))
	})

	It("are not created for requests without a key", func(ctx context.Context) {
		before := len(recorder.Ended())
		for _, path := range []string{base + "/posts", base + "/nothing", "/health", "/wp-login.php"} {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, own.site+path, http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			request.Header.Set("Authorization", "Bearer wrong")
			request.Header.Set("traceparent", traceparent)
			response, err := http.DefaultClient.Do(request)
			Expect(err).NotTo(HaveOccurred())
			Expect(response.Body.Close()).To(Succeed())
		}
		Expect(recorder.Ended()).To(HaveLen(before))
	})

	It("are not stored in posts by a server without tracing", func(ctx context.Context) {
		var created reply
		Eventually(func() int {
			created = do(ctx, instance, "POST", base+"/posts", text("good-x", "not traced"), header)
			return created.status
		}).Should(Equal(201))
		Expect(t.stored(ctx, as[postBody](created).Data.ID).Annotations).NotTo(HaveKey(v1alpha1.TraceparentAnnotation))
	})
})
