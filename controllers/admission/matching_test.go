// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// scheduled returns a post that stays unchanged while a spec runs.
func scheduled() *v1alpha1.Post {
	return post(func(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Hour)) })
}

// passedOver holds, for each match condition of the webhook, a write that only this condition excludes. Each function
// returns the number of requests to the webhook.
var passedOver = map[string]func(ctx context.Context) int64{
	"not-by-the-apiserver": func(ctx context.Context) int64 {
		return webhookRequests(func() error { return apiserver.Create(ctx, sent(scheduled())) })
	},
	"new-or-large": func(ctx context.Context) int64 {
		p := scheduled()
		Expect(user.Create(ctx, p)).To(Succeed())
		p.Labels = map[string]string{"changed": "true"}
		return webhookRequests(func() error { return user.Update(ctx, p) })
	},
}

// webhookRequests returns the number of requests to the webhook that do causes.
func webhookRequests(do func() error) int64 {
	GinkgoHelper()
	before := asked.Load()
	Expect(do()).To(Succeed())
	return asked.Load() - before
}

var _ = Describe("the webhook's match conditions", Serial, func() {
	change := func(ctx context.Context, edit func(*[]admissionregistrationv1.MatchCondition)) {
		GinkgoHelper()
		Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			c := trusted(ctx)
			edit(&c.Webhooks[0].MatchConditions)
			return user.Update(ctx, c)
		})).To(Succeed())
	}

	It("each have a test here", func(ctx SpecContext) {
		var want []any
		for name := range passedOver {
			want = append(want, name)
		}
		var names []string
		for _, condition := range trusted(ctx).Webhooks[0].MatchConditions {
			names = append(names, condition.Name)
		}
		Expect(names).To(ConsistOf(want...))
	})

	It("pass requests that need validation", func(ctx SpecContext) {
		p := scheduled()
		Expect(webhookRequests(func() error { return user.Create(ctx, p) })).To(BeEquivalentTo(1))
		p.Spec.Targets[0].Caption = "another"
		Expect(webhookRequests(func() error { return user.Update(ctx, p) })).To(BeEquivalentTo(1))
	})

	DescribeTable("check metadata only if it is large, and was not changed by Herald",
		func(ctx SpecContext, edit func(*v1alpha1.Post), who *client.Client, want int) {
			p := scheduled()
			Expect(user.Create(ctx, p)).To(Succeed())
			edit(p)
			Expect(webhookRequests(func() error { return (*who).Update(ctx, p) })).To(BeEquivalentTo(want))
		},
		Entry("a label", func(p *v1alpha1.Post) { p.Labels = map[string]string{"a": "b"} }, &user, 0),
		Entry("4 KiB of annotations", func(p *v1alpha1.Post) { p.Annotations = map[string]string{"a": strings.Repeat("a", 4000)} }, &user, 0),
		Entry("more than 4 KiB of annotations", func(p *v1alpha1.Post) { p.Annotations = map[string]string{"a": strings.Repeat("a", 4200)} }, &user, 1),
		Entry("annotations with more bytes than characters", func(p *v1alpha1.Post) { p.Annotations = map[string]string{"a": strings.Repeat("ü", 2200)} }, &user, 1),
		Entry("more than 4 KiB of finalizers", func(p *v1alpha1.Post) {
			for i := range 55 {
				p.Finalizers = append(p.Finalizers, fmt.Sprintf("example.com/%063d", i))
			}
			p.Annotations = map[string]string{"a": strings.Repeat("a", 500)}
		}, &user, 1),
		Entry("more than 4 KiB of owners", func(p *v1alpha1.Post) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: strings.Repeat("a", 4200), UID: "1"}}
		}, &user, 1),
		Entry("the manager's finalizer with the same size", func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{"a": strings.Repeat("a", 4200)}
			Expect(user.Update(context.Background(), p)).To(Succeed())
			p.Finalizers = []string{v1alpha1.DeliveryFinalizer}
		}, &live, 0),
		Entry("no new metadata", func(*v1alpha1.Post) {}, &user, 0),
	)

	It("pass changes to a post that is being deleted but is still stored", func(ctx SpecContext) {
		p := scheduled()
		p.Finalizers = []string{"example.com/held"}
		Expect(user.Create(ctx, p)).To(Succeed())
		Expect(user.Delete(ctx, p)).To(Succeed())
		Expect(user.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		Expect(webhookRequests(func() error {
			held := p.DeepCopy()
			held.Spec.Targets[0].Caption = "the last words"
			return user.Update(ctx, held, client.DryRunAll)
		})).To(BeEquivalentTo(1))
		p.Finalizers = nil
		Expect(webhookRequests(func() error { return user.Update(ctx, p) })).To(BeZero())
	})

	for _, name := range slices.Sorted(maps.Keys(passedOver)) {
		write := passedOver[name]
		It("exclude a write that would reach the webhook without the condition "+name, func(ctx SpecContext) {
			Expect(write(ctx)).To(BeZero())

			var whole []admissionregistrationv1.MatchCondition
			change(ctx, func(conditions *[]admissionregistrationv1.MatchCondition) {
				whole = slices.Clone(*conditions)
				*conditions = slices.DeleteFunc(*conditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == name })
			})
			DeferCleanup(func(ctx SpecContext) {
				change(ctx, func(conditions *[]admissionregistrationv1.MatchCondition) { *conditions = whole })
				Eventually(func() int64 { return write(ctx) }).Should(BeZero())
			})
			Eventually(func() int64 { return write(ctx) }).Should(BeEquivalentTo(1))
		})
	}
})
