// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

const (
	requestTrace = "0af7651916cd43dd8448eb211c80319c"
	traceparent  = "00-" + requestTrace + "-b7ad6b7169203331-01"
)

func withTraceparent(by string) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Annotations = map[string]string{v1alpha1.TraceparentAnnotation: by} }
}

// valueOf returns the value of an attribute of a span, or "" if there is none.
func valueOf(span sdktrace.ReadOnlySpan, key tracing.AttributeKey) string {
	for _, a := range span.Attributes() {
		if string(a.Key) == string(key) {
			return a.Value.String()
		}
	}
	return ""
}

// lockedBuffer receives the log of a manager.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var _ = Describe("Traces", Ordered, func() {
	var m *manager
	var recorder *tracetest.SpanRecorder
	var log *lockedBuffer
	BeforeAll(func() {
		recorder, log = tracetest.NewSpanRecorder(), &lockedBuffer{}
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		m = startManagerWithLog(logr.FromSlogHandler(slog.NewJSONHandler(log, nil)), func(o *post.Options) {
			o.Tracer = tracing.NewTracer(provider)
		})
	})
	AfterAll(func() { m.stop() })

	// deliveries returns the ended spans of the reconciliations that ended with the post published.
	deliveries := func(p *v1alpha1.Post) func() []sdktrace.ReadOnlySpan {
		return func() (found []sdktrace.ReadOnlySpan) {
			for _, span := range recorder.Ended() {
				if span.Name() == "deliver" && valueOf(span, tracing.Post) == p.Name && valueOf(span, tracing.Phase) == "posted" {
					found = append(found, span)
				}
			}
			return found
		}
	}
	// below returns the ended child spans of a span, by name.
	below := func(parent sdktrace.ReadOnlySpan) map[string]sdktrace.ReadOnlySpan {
		found := map[string]sdktrace.ReadOnlySpan{}
		for _, span := range recorder.Ended() {
			if span.Parent().SpanID() == parent.SpanContext().SpanID() {
				found[span.Name()] = span
			}
		}
		return found
	}

	It("continue from the request to the platform call, without the post's content", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "a caption of ours", withTraceparent(traceparent))
		Eventually(deliveries(p)).Should(HaveLen(1))
		pass := deliveries(p)()[0]
		Expect(pass.SpanContext().TraceID().String()).To(Equal(requestTrace))
		Expect(pass.Links()).To(BeEmpty())
		Expect(valueOf(pass, tracing.Namespace)).To(Equal(t.namespace))

		steps := below(pass)
		Expect(steps).To(And(HaveKey("claim"), HaveKey("publish"), HaveKey("record")))
		Expect(valueOf(steps["claim"], tracing.Targets)).To(Equal("1"))
		publish := steps["publish"]
		status := read(ctx, p).Status.Targets[0]
		Expect(valueOf(publish, tracing.Target)).To(Equal("0"))
		Expect(valueOf(publish, tracing.Platform)).To(Equal("x"))
		Expect(valueOf(publish, tracing.Connection)).To(Equal("x"))
		Expect(valueOf(publish, tracing.Attempt)).To(Equal(status.Attempt.ID))
		Expect(valueOf(publish, tracing.Outcome)).To(Equal("posted"))
		call := below(publish)["call platform"]
		Expect(call).NotTo(BeNil())
		Expect(valueOf(call, tracing.Action)).To(Equal("publish"))
		Expect(valueOf(call, tracing.Status)).To(Equal("201"))

		for _, span := range recorder.Ended() {
			Expect(fmt.Sprintf("%+v", span)).NotTo(Or(ContainSubstring("a caption of ours"), ContainSubstring(t.account.AccessToken), ContainSubstring("://")), span.Name())
		}
		Expect(log.String()).To(ContainSubstring(`"trace_id":"` + requestTrace + `"`))
		Expect(log.String()).NotTo(Or(ContainSubstring("a caption of ours"), ContainSubstring(t.account.AccessToken)))
	})

	It("start a new trace for a scheduled post, with a link to its request", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "later", at(1500*time.Millisecond), withTraceparent(traceparent))
		Eventually(deliveries(p)).Should(HaveLen(1))
		pass := deliveries(p)()[0]
		Expect(pass.SpanContext().TraceID().String()).NotTo(Equal(requestTrace))
		Expect(pass.Parent().IsValid()).To(BeFalse())
		Expect(pass.Links()).To(HaveLen(1))
		Expect(pass.Links()[0].SpanContext.TraceID().String()).To(Equal(requestTrace))
	})

	DescribeTable("start a new trace if the annotation does not contain a request", func(ctx SpecContext, annotation string) {
		t := newTeam(ctx)
		p := t.post(ctx, "by kubectl", withTraceparent(annotation))
		Eventually(deliveries(p)).Should(HaveLen(1))
		pass := deliveries(p)()[0]
		Expect(pass.Parent().IsValid()).To(BeFalse())
		Expect(pass.Links()).To(BeEmpty())
	},
		Entry("an empty one", ""),
		Entry("one written manually", "delivered by hand"),
		Entry("a long one", string(bytes.Repeat([]byte("00-"), 10_000))),
	)

	It("contain a rejected call, and the lookup of one whose response was lost", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		p := t.post(ctx, "lost and found", withTraceparent(traceparent))
		Eventually(deliveries(p)).ShouldNot(BeEmpty())
		var publish, lookup sdktrace.ReadOnlySpan
		for _, span := range recorder.Ended() {
			if valueOf(span, tracing.Attempt) != read(ctx, p).Status.Targets[0].Attempt.ID {
				continue
			}
			switch span.Name() {
			case "publish":
				publish = span
			case "look up":
				if valueOf(span, tracing.Outcome) == "found" {
					lookup = span
				}
			}
		}
		Expect(publish).NotTo(BeNil())
		Expect(valueOf(publish, tracing.Outcome)).To(Equal("unknown"))
		Expect(lookup).NotTo(BeNil())
		Expect(lookup.SpanContext().TraceID().String()).To(Equal(requestTrace))
	})

	It("do not contain spans with missing parents", func() {
		ended := map[string]bool{}
		for _, span := range recorder.Ended() {
			ended[span.SpanContext().SpanID().String()] = true
		}
		for _, span := range recorder.Ended() {
			if parent := span.Parent(); parent.IsValid() && !parent.IsRemote() {
				Expect(ended).To(HaveKey(parent.SpanID().String()), span.Name())
			}
		}
	})
})

var _ = Describe("A collector that does not respond", Ordered, func() {
	It("does not delay posts", func(ctx SpecContext) {
		var reached sync.Once
		asked, release := make(chan struct{}), make(chan struct{})
		hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			reached.Do(func() { close(asked) })
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}))
		DeferCleanup(func() { close(release); hanging.Close() })
		GinkgoT().Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
		GinkgoT().Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
		GinkgoT().Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
		provider := suite.Must(tracing.Start(ctx, tracing.Options{
			Collector: tracing.Collector{URL: hanging.URL, Timeout: time.Hour}, Service: "herald-manager", SamplingRatio: new(1.0), Log: slog.New(slog.DiscardHandler),
		}))
		m := startManager(func(o *post.Options) { o.Tracer = provider.Tracer() })
		t := newTeam(ctx)
		first := t.post(ctx, "first")
		Eventually(asked).Should(BeClosed())
		Eventually(phase(ctx, first)).Should(Equal(v1alpha1.PhasePosted))
		for i := range 10 {
			posted(ctx, t.post(ctx, fmt.Sprint("more than the queue holds ", i)))
		}
		Expect(publishesBy(t.account)).To(Equal(11))
		m.stop()
	})
})

var _ = Describe("The metrics", Ordered, func() {
	registry := prometheus.NewRegistry()
	BeforeAll(func() {
		runManager(func(o *post.Options) { o.Metrics = post.NewMetrics(registry) })
	})

	// value returns the value of the series with the given labels, or -1 if there is none.
	value := func(name string, labels map[string]string) func() float64 {
		return func() float64 {
			GinkgoHelper()
			families := suite.Must(registry.Gather())
			for _, family := range families {
				for _, metric := range family.GetMetric() {
					matches := 0
					for _, pair := range metric.GetLabel() {
						if want, asked := labels[pair.GetName()]; asked && want == pair.GetValue() {
							matches++
						}
					}
					if family.GetName() == name && matches == len(labels) {
						return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
					}
				}
			}
			return -1
		}
	}

	It("contain the bytes of an upload, and its speed", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		picture := suite.Must(os.Stat(filepath.Join("..", "..", "internal", "media", "probe", "testdata", "picture.jpg")))
		before := max(value("herald_upload_bytes_total", map[string]string{"platform": "x"})(), 0)
		p := t.post(ctx, "later", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		Expect(value("herald_upload_bytes_total", map[string]string{"platform": "x"})() - before).To(BeNumerically(">=", picture.Size()))
		Expect(value("herald_upload_rate_bytes_per_second", map[string]string{"platform": "x", "kind": "image"})()).To(BeNumerically(">", 0))
		Eventually(value("herald_pending_upload_bytes", map[string]string{"namespace": t.namespace})).Should(BeEquivalentTo(-1), "no upload remains")
	})

	It("contain the uploads in progress that will be late", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		t.fault(ctx, sandboxtest.Fault{Operation: "upload", Kind: "delay", DelayMS: 5000})
		p := t.post(ctx, "soon", showing("a"), at(2*time.Second))
		labels := map[string]string{"namespace": t.namespace, "platform": "x"}
		Eventually(value("herald_late_uploads", labels)).Should(BeEquivalentTo(1))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(value("herald_late_uploads", labels)).Should(BeEquivalentTo(-1))
	})

	It("contain each settled target once, by team and reason", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: http.StatusForbidden})
		refused := map[string]string{"namespace": t.namespace, "state": "failed", "reason": v1alpha1.ReasonRefused}
		counted := map[string]string{"namespace": t.namespace, "state": "posted"}
		Eventually(value("herald_target_results_total", refused)).Should(BeZero(), "series exist from the first account on")
		first := t.post(ctx, "refused")
		Eventually(phase(ctx, first)).Should(Equal(v1alpha1.PhaseFailed))
		posted(ctx, t.post(ctx, "posted"))
		Eventually(value("herald_target_results_total", refused)).Should(BeEquivalentTo(1))
		Eventually(value("herald_target_results_total", counted)).Should(BeEquivalentTo(1))
	})
})
