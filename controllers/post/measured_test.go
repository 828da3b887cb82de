// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

var _ = Describe("What is measured", Ordered, func() {
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

	It("is the bytes of an upload, and how fast it went", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		picture := suite.Must(os.Stat(filepath.Join("..", "..", "internal", "media", "probe", "testdata", "picture.jpg")))
		before := max(value("herald_upload_bytes_total", map[string]string{"platform": "x"})(), 0)
		p := t.post(ctx, "later", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		Expect(value("herald_upload_bytes_total", map[string]string{"platform": "x"})() - before).To(BeNumerically(">=", picture.Size()))
		Expect(value("herald_upload_rate_bytes_per_second", map[string]string{"platform": "x", "kind": "image"})()).To(BeNumerically(">", 0))
		Eventually(value("herald_pending_upload_bytes", map[string]string{"namespace": t.namespace})).Should(BeEquivalentTo(-1), "nothing is left to upload")
	})

	It("is which uploads are under way and will be late", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		t.fault(ctx, sandboxtest.Fault{Operation: "upload", Kind: "delay", DelayMS: 5000})
		p := t.post(ctx, "soon", showing("a"), at(2*time.Second))
		labels := map[string]string{"namespace": t.namespace, "platform": "x"}
		Eventually(value("herald_late_uploads", labels)).Should(BeEquivalentTo(1))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(value("herald_late_uploads", labels)).Should(BeEquivalentTo(-1))
	})

	It("is each target that ends, once, by team and reason", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: http.StatusForbidden})
		refused := map[string]string{"namespace": t.namespace, "state": "failed", "reason": v1alpha1.ReasonRefused}
		counted := map[string]string{"namespace": t.namespace, "state": "posted"}
		Eventually(value("herald_target_results_total", refused)).Should(BeZero(), "a team's series begin with its account")
		first := t.post(ctx, "refused")
		Eventually(phase(ctx, first)).Should(Equal(v1alpha1.PhaseFailed))
		posted(ctx, t.post(ctx, "posted"))
		Eventually(value("herald_target_results_total", refused)).Should(BeEquivalentTo(1))
		Eventually(value("herald_target_results_total", counted)).Should(BeEquivalentTo(1))
	})
})
