// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

var _ = Describe("Files beyond the team's budget", func() {
	// boundedDesk returns a desk with a budget, in a namespace that is empty at first.
	boundedDesk := func(ctx context.Context, b v1alpha1.TeamBudget) *desk {
		GinkgoHelper()
		Expect(k8s.DeleteAllOf(ctx, &v1alpha1.Media{}, client.InNamespace(bounded))).To(Succeed())
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		Eventually(func(g Gomega) {
			var left v1alpha1.MediaList
			g.Expect(k8s.List(ctx, &left, client.InNamespace(bounded))).To(Succeed())
			for i := range left.Items {
				g.Expect(client.IgnoreNotFound(k8s.Patch(ctx, &left.Items[i], patch))).To(Succeed())
			}
			g.Expect(hand.GetClient().List(ctx, &left, client.InNamespace(bounded))).To(Succeed())
			g.Expect(left.Items).To(BeEmpty())
		}).Should(Succeed())
		d := newDesk(loose())
		d.reservations.owner = func(context.Context, string) (*v1alpha1.Team, error) {
			t := &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Namespace: bounded, Budget: b}}
			t.Name = "acme"
			return t, nil
		}
		return d
	}

	DescribeTable("do not get an upload URL until there is room", func(ctx SpecContext, b v1alpha1.TeamBudget, words string) {
		d := boundedDesk(ctx, b)
		first, second := created(ctx, bounded), created(ctx, bounded)
		d.step(ctx, first, is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload))
		d.step(ctx, second, func(g Gomega, m *v1alpha1.Media) {
			is(v1alpha1.MediaPending, v1alpha1.ReasonBudgetLimit)(g, m)
			g.Expect(m.Status.UploadURL).To(BeEmpty())
			ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
			g.Expect(ready.Message).To(And(ContainSubstring(words), ContainSubstring(`of Team "acme"`), ContainSubstring("proceeds when there is room")))
		})
		d.step(ctx, first, is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload)) // an issued address is kept
		Expect(k8s.Delete(ctx, first)).To(Succeed())
		d.clock.Step(reservationTTL)
		d.step(ctx, second, func(g Gomega, m *v1alpha1.Media) {
			is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload)(g, m)
			g.Expect(m.Status.UploadURL).NotTo(BeEmpty())
		})
	},
		Entry("by number", v1alpha1.TeamBudget{PendingFiles: new(int32(1))}, "allows 1 pending files; 1 are used and this needs 1 more"),
		Entry("by bytes", v1alpha1.TeamBudget{PendingFileBytes: new(resource.MustParse("19"))}, "allows 19 bytes of pending files; 10 are used and this needs 10 more"),
	)

	It("are not fetched, and a file of unknown size counts as the largest", func(ctx SpecContext) {
		d := boundedDesk(ctx, v1alpha1.TeamBudget{PendingFileBytes: new(resource.MustParse("20Mi"))})
		waiting, fetched := created(ctx, bounded), created(ctx, bounded, fromSource(web.URL+"/a.png"))
		d.step(ctx, waiting, is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload))
		d.step(ctx, fetched, is(v1alpha1.MediaPending, v1alpha1.ReasonBudgetLimit))
		Expect(k8s.Delete(ctx, waiting)).To(Succeed())
		d.clock.Step(reservationTTL)
		d.step(ctx, fetched, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
	})

	It("are counted together with the API's, which do not wait", func(ctx SpecContext) {
		d := boundedDesk(ctx, v1alpha1.TeamBudget{PendingFiles: new(int32(1))})
		created(ctx, bounded, fromTheAPI)
		api, applied := created(ctx, bounded, fromTheAPI), created(ctx, bounded)
		Eventually(func(g Gomega) {
			var all v1alpha1.MediaList
			g.Expect(d.Client.List(ctx, &all, client.InNamespace(bounded))).To(Succeed())
			g.Expect(all.Items).To(HaveLen(3))
		}).Should(Succeed())
		d.step(ctx, api, is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload))
		d.step(ctx, applied, is(v1alpha1.MediaPending, v1alpha1.ReasonBudgetLimit))
	})

	It("never exceed the budget, however many are reconciled concurrently", func(ctx SpecContext) {
		const allowed, all = 5, 24
		d := boundedDesk(ctx, v1alpha1.TeamBudget{PendingFiles: new(int32(allowed))})
		names := make([]client.ObjectKey, all)
		for i := range names {
			names[i] = client.ObjectKeyFromObject(created(ctx, bounded))
		}
		granted := func() (n int) {
			GinkgoHelper()
			var found v1alpha1.MediaList
			Expect(k8s.List(ctx, &found, client.InNamespace(bounded))).To(Succeed())
			for i := range found.Items {
				if found.Items[i].Status.UploadURL != "" {
					n++
				}
			}
			return n
		}
		for range 4 {
			var side sync.WaitGroup
			for _, name := range names {
				side.Go(func() {
					defer GinkgoRecover()
					_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: name})
					Expect(err).NotTo(HaveOccurred(), name.String())
				})
			}
			side.Wait()
			Expect(granted()).To(BeNumerically("<=", allowed))
		}
		Eventually(func(g Gomega) {
			for _, name := range names {
				_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: name})
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(granted()).To(Equal(allowed))
		}).WithTimeout(20 * time.Second).Should(Succeed())
	})
})

func TestPauseOf(t *testing.T) {
	for name, tc := range map[string]struct {
		why          string
		waited, want time.Duration
	}{
		"a new one":     {"room may return within minutes", 0, 30 * time.Second},
		"a clock ahead": {"its creation is in the future", -time.Hour, 30 * time.Second},
		"some minutes":  {"the check is at most a fifth too late", 8 * time.Minute, 2 * time.Minute},
		"a day":         {"a hundred thousand pending files cause 170 checks a second instead of 3,400", 24 * time.Hour, 10 * time.Minute},
	} {
		if got := budgetPause(tc.waited); got != tc.want {
			t.Errorf("%s: %s instead of %s: %s", name, got, tc.want, tc.why)
		}
	}
}
