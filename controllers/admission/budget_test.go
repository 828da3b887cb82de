// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
)

// budgeted is a team with a budget, in a namespace whose usage is known.
type budgeted struct{ name string }

func newBudgeted(ctx context.Context, b v1alpha1.TeamBudget) *budgeted {
	GinkgoHelper()
	t := &budgeted{fmt.Sprintf("budgeted-%d", serial.Add(1))}
	Expect(user.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.name, Labels: map[string]string{v1alpha1.TeamLabel: t.name}}})).To(Succeed())
	Expect(user.Create(ctx, &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: t.name}, Spec: v1alpha1.TeamSpec{Namespace: t.name, Budget: b}})).To(Succeed())
	return t
}

// post returns one of the team's drafts, changed by edits.
func (t *budgeted) post(edits ...edit) *v1alpha1.Post {
	p := post(append([]edit{draft}, edits...)...)
	p.Namespace = t.name
	return p
}

// stored stores a post as the apiserver does, bypassing the webhook.
func (t *budgeted) stored(ctx context.Context, edits ...edit) *v1alpha1.Post {
	GinkgoHelper()
	p := sent(t.post(edits...))
	Expect(apiserver.Create(ctx, p)).To(Succeed())
	return p
}

func released(s *v1alpha1.PostSpec) { s.Draft = false }

func forThen(s *v1alpha1.PostSpec) {
	s.ScheduledAt = v1alpha1.NewTimePtr(time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC))
}

// change sends a change to a stored post to the webhook.
func change(ctx context.Context, p *v1alpha1.Post, edits ...edit) error {
	changed := p.DeepCopy()
	for _, e := range edits {
		e(&changed.Spec)
	}
	return user.Update(ctx, changed, client.DryRunAll)
}

var _ = Describe("The budget of a team", func() {
	refusedWith := func(words string) OmegaMatcher {
		return MatchError(And(ContainSubstring("the team's budget allows"), ContainSubstring(words)))
	}
	create := func(ctx context.Context, t *budgeted, edits ...edit) func() error {
		return func() error { return user.Create(ctx, t.post(edits...), client.DryRunAll) }
	}

	It("rejects a post beyond the limit with the HTTP API's message, and admits it once another is deleted", func(ctx SpecContext) {
		t := newBudgeted(ctx, v1alpha1.TeamBudget{UnfinishedPosts: new(int32(2))})
		first := t.stored(ctx)
		Eventually(create(ctx, t)).Should(Succeed(), "the second is the last")
		t.stored(ctx, released, forThen)
		Eventually(create(ctx, t)).Should(refusedWith(fmt.Sprintf("2 posts that are drafts, scheduled or being delivered; 2 are used and this needs 1 more. "+
			"Cancel drafts or scheduled posts, or have an administrator raise spec.budget.unfinishedPosts of Team %q.", t.name)))
		first.Finalizers = nil // the manager removes it
		Expect(user.Update(ctx, first)).To(Succeed())
		Expect(user.Delete(ctx, first)).To(Succeed())
		Eventually(create(ctx, t)).Should(Succeed())
	})

	It("lets a draft be published at the limit but not above it, where posts can still be cancelled or made smaller", func(ctx SpecContext) {
		t := newBudgeted(ctx, v1alpha1.TeamBudget{UnfinishedPosts: new(int32(2)), PostBytes: new(resource.MustParse("0"))})
		kept := t.stored(ctx, saying(strings.Repeat("a", 200)))
		second := t.stored(ctx, saying(strings.Repeat("a", 100)))
		Eventually(create(ctx, t)).Should(refusedWith("bytes of stored posts"))
		Consistently(func() error { return change(ctx, second, released, forThen, saying("a")) }, 500*time.Millisecond).Should(Succeed())
		t.stored(ctx)
		Eventually(func() error { return change(ctx, second, released, forThen, saying("a")) }).
			Should(refusedWith("3 are used, so no draft can be published until there are fewer"))
		Expect(change(ctx, kept, saying("shorter"))).To(Succeed())
		Expect(change(ctx, kept, func(s *v1alpha1.PostSpec) { s.Cancelled = true })).To(Succeed())
		Expect(change(ctx, kept, saying(strings.Repeat("b", 201)))).To(refusedWith("allows 0 bytes of stored posts"))
		labelled := kept.DeepCopy()
		labelled.Labels, labelled.Finalizers = map[string]string{"a": "b"}, []string{"example.com/held"}
		Expect(user.Update(ctx, labelled, client.DryRunAll)).To(Succeed())
		kept.Status.ObservedGeneration = 1
		Expect(user.Status().Update(ctx, kept)).To(Succeed())
	})

	It("applies to a cancelled post, but not to a cancellation without other changes", func(ctx SpecContext) {
		cancelled := func(s *v1alpha1.PostSpec) { s.Cancelled = true }
		t := newBudgeted(ctx, v1alpha1.TeamBudget{PostBytes: new(resource.MustParse("0"))})
		kept := t.stored(ctx)
		Eventually(create(ctx, t, cancelled)).Should(refusedWith("bytes of stored posts"), "cancelled posts use the budget")
		Expect(change(ctx, kept, cancelled, saying(strings.Repeat("a", 2000)))).To(refusedWith("bytes of stored posts"), "the post grows as it is cancelled")
		Expect(change(ctx, kept, cancelled)).To(Succeed(), "a cancellation is admitted above the budget")
		Expect(change(ctx, kept, cancelled, saying("hi"))).To(Succeed(), "the post shrinks as it is cancelled")

		again := t.stored(ctx)
		again.Status.Phase, again.Status.Finished, again.Status.CancelledAt = v1alpha1.PhaseCancelled, true, v1alpha1.NewTimePtr(time.Now())
		Expect(user.Status().Update(ctx, again)).To(Succeed())
		Expect(change(ctx, again, cancelled)).To(refusedWith("bytes of stored posts"), "a cancelled post cannot be cancelled again above the budget")
	})

	It("applies to later changes of a post's metadata, whatever its state", func(ctx SpecContext) {
		t := newBudgeted(ctx, v1alpha1.TeamBudget{PostBytes: new(resource.MustParse("0"))})
		kept := t.stored(ctx)
		Eventually(create(ctx, t)).Should(refusedWith("bytes of stored posts"))
		around := func(bytes int) func() error {
			return func() error {
				p := kept.DeepCopy()
				p.Annotations = map[string]string{"example.com/much": strings.Repeat("a", bytes)}
				return user.Update(ctx, p, client.DryRunAll)
			}
		}
		Expect(around(20 << 10)()).To(refusedWith("bytes of stored posts"))
		Expect(around(1<<10)()).To(Succeed(), "small annotations are not sent to the webhook")
		kept.Status.Finished = true
		Expect(user.Status().Update(ctx, kept)).To(Succeed())
		Expect(around(20 << 10)()).To(refusedWith("bytes of stored posts"))
	})

	It("limits the size of a cancelled post too", func(ctx SpecContext) {
		cancelled := func(s *v1alpha1.PostSpec) { s.Cancelled = true }
		t := newBudgeted(ctx, v1alpha1.TeamBudget{})
		large := t.post(cancelled)
		large.Annotations = map[string]string{"example.com/much": strings.Repeat("a", 200<<10)}
		large.Spec.Targets[0].Caption = strings.Repeat("a", 57_250) // the policy herald-post-size admits this, because it does not count the names of fields
		Expect(user.Create(ctx, large, client.DryRunAll)).To(MatchError(ContainSubstring("a post may take at most 262144")))
		kept := t.stored(ctx)
		kept.Annotations, kept.Spec.Targets[0].Caption, kept.Spec.Cancelled = large.Annotations, large.Spec.Targets[0].Caption, true
		Expect(user.Update(ctx, kept, client.DryRunAll)).To(MatchError(ContainSubstring("a post may take at most 262144")))
	})

	It("counts posts admitted since the apiserver counted, but not dry runs", func(ctx SpecContext) {
		t := newBudgeted(ctx, v1alpha1.TeamBudget{PostBytes: new(resource.MustParse("5000"))})
		first, second := t.post(), t.post()
		Eventually(create(ctx, t, saying(strings.Repeat("a", 3000)))).Should(refusedWith("0 are used"), "the budget is counted, without dry runs")
		refused := t.post(func(s *v1alpha1.PostSpec) { s.Draft, s.Category, s.Targets[0].Caption = false, "video", "" })
		Expect(user.Create(ctx, refused)).NotTo(Succeed())
		Expect(user.Create(ctx, first)).To(Succeed())
		Expect(user.Create(ctx, second)).To(Succeed())
		Expect(create(ctx, t)()).To(refusedWith("5,000 bytes of stored posts; 4,"))
		Expect(change(ctx, first, saying("longer than before, by far too much to fit beside the others"), func(s *v1alpha1.PostSpec) {
			s.Targets[0].Caption += strings.Repeat("a", 1000)
		})).To(refusedWith("5,000 bytes"))
		Expect(quota.NewUsageStore(quota.NewAPI(user, user)).RecordBudget(ctx, t.name, []v1alpha1.BudgetUse{
			{Item: v1alpha1.BudgetPostBytes, Used: 2500, Limit: 5000},
		}, time.Now().Add(time.Minute), 0)).To(Succeed())
		Expect(create(ctx, t)()).To(Succeed(), "the count is up to date after a deletion")
	})

	It("counts stored posts as Kubernetes does, and bytes as the apiserver does", func(ctx SpecContext) {
		t := newBudgeted(ctx, v1alpha1.TeamBudget{Posts: new(int32(10)), PostBytes: new(resource.MustParse("5000"))})
		store := quota.NewUsageStore(quota.NewAPI(user, user))
		count := func(posts, bytes int64, at time.Time) {
			GinkgoHelper()
			Expect(store.RecordBudget(ctx, t.name, []v1alpha1.BudgetUse{
				{Item: v1alpha1.BudgetPosts, Used: posts, Limit: 10}, {Item: v1alpha1.BudgetPostBytes, Used: bytes, Limit: 5000},
			}, at, 0)).To(Succeed())
		}
		Eventually(create(ctx, t)).Should(Succeed())
		count(9, 2000, time.Now())
		Expect(create(ctx, t)()).To(Succeed())
		count(10, 2000, time.Now())
		Expect(create(ctx, t)()).To(refusedWith("10 stored posts, including finished and cancelled ones; 10 are used and this needs 1 more"))
		count(9, 4999, time.Now())
		Expect(create(ctx, t)()).To(refusedWith("5,000 bytes of stored posts; 4,999 are used"))

		q := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: v1alpha1.BudgetQuota},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/posts.social.herald.dev": resource.MustParse("10")}},
		}
		count(0, 0, time.Now())
		Expect(user.Create(ctx, q)).To(Succeed())
		q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: q.Spec.Hard}
		Expect(user.Status().Update(ctx, q)).To(Succeed())
		Eventually(create(ctx, t)).Should(refusedWith("10 stored posts"))
		// Without the webhook, Kubernetes' own count is the limit.
		Eventually(func() error { return apiserver.Create(ctx, sent(t.post())) }).Should(MatchError(ContainSubstring("exceeded quota: " + v1alpha1.BudgetQuota)))
	})
})
