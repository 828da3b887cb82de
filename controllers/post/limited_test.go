// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"log/slog"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/logtest"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("A post that finds its account at a limit", func() {
	It("has the Connection say so at once, with one event and one line", func(ctx SpecContext) {
		t, out := newTeam(ctx), &logtest.Log{}
		m := startManagerWithLog(logr.FromSlogHandler(slog.NewJSONHandler(out, nil)))
		DeferCleanup(m.stop)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", Times: 1, RetryAfterS: 900})
		p := t.post(ctx, "hello")
		limited := func() *metav1.Condition {
			conn := t.connection(ctx)
			return meta.FindStatusCondition(conn.Status.Conditions, v1alpha1.ConditionRateLimited)
		}
		Eventually(limited).Should(HaveValue(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonQuotaUsedUp), HaveField("Message", HavePrefix("nothing is sent before ")),
		)))
		Eventually(func() (notes []string) {
			var list eventsv1.EventList
			Expect(k8s.List(ctx, &list, client.InNamespace(t.namespace))).To(Succeed())
			for i := range list.Items {
				if e := &list.Items[i]; e.Regarding.Kind == "Connection" {
					notes = append(notes, e.Reason+" "+e.Note)
				}
			}
			return notes
		}).Should(HaveExactElements(HavePrefix("RateLimited QuotaUsedUp: nothing is sent before ")))
		Expect(out.With("the limit of an account has changed")).To(HaveExactElements(And(
			HaveKeyWithValue("namespace", p.Namespace), HaveKeyWithValue("connection", "x"), HaveKeyWithValue("limited", true), HaveKeyWithValue("reason", v1alpha1.ReasonQuotaUsedUp),
		)))
	})
})
