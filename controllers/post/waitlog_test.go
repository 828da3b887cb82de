// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"log/slog"
	"strconv"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/logtest"
)

var _ = Describe("The log at info", func() {
	It("says once for what a post waits, over many passes and a restart, and that it is out", func(ctx SpecContext) {
		t, out := newTeam(ctx), &logtest.Log{}
		start := func() *manager {
			return startManagerWithLog(logr.FromSlogHandler(slog.NewJSONHandler(out, nil)))
		}
		m := start()
		DeferCleanup(func() { m.stop() })
		t.setReady(ctx, "x", metav1.ConditionFalse, v1alpha1.ReasonRevoked, t.account.Username)
		p := t.post(ctx, "hello")
		Eventually(func() []logtest.Line { return out.With("a target waits") }).Should(HaveLen(1))
		for i := range 3 {
			edit(ctx, p, func(p *v1alpha1.Post) { p.Labels = map[string]string{"woken": strconv.Itoa(i)} })
		}
		m.stop()
		m = start()
		t.setReady(ctx, "x", metav1.ConditionTrue, v1alpha1.ReasonConnected, t.account.Username)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(func() int { return len(out.With("published")) + len(out.With("published late")) }).Should(Equal(1))

		waits := out.With("a target waits")
		Expect(waits).To(HaveLen(1))
		Expect(waits[0]).To(And(
			HaveKeyWithValue("namespace", p.Namespace), HaveKeyWithValue("name", p.Name), HaveKeyWithValue("platform", "x"), HaveKeyWithValue("connection", "x"),
			HaveKeyWithValue("reason", v1alpha1.ReasonConnectionNotReady), HaveKeyWithValue("problem", ContainSubstring(`connection "x" is not ready`)),
		))
		lines, err := out.Lines()
		Expect(err).NotTo(HaveOccurred(), "no field stands twice in a line")
		for _, line := range lines {
			Expect(line.Message()).NotTo(HavePrefix("Starting"), "a start is no news")
		}
	})
})
