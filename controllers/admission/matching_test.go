// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// scheduled is a post that nothing happens to while a spec runs.
func scheduled() *v1alpha1.Post {
	return post(func(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Hour)) })
}

// passedOver holds, for each match condition of the webhook, a write that no
// other one keeps from it. Each returns how often the webhook was asked.
var passedOver = map[string]func(ctx context.Context) int64{
	"not-by-the-apiserver": func(ctx context.Context) int64 {
		return askedBy(func() error { return apiserver.Create(ctx, sent(scheduled())) })
	},
	"spec-is-new": func(ctx context.Context) int64 {
		p := scheduled()
		Expect(user.Create(ctx, p)).To(Succeed())
		p.Labels = map[string]string{"changed": "true"}
		return askedBy(func() error { return user.Update(ctx, p) })
	},
	"not-being-deleted": func(ctx context.Context) int64 {
		p := scheduled()
		p.Finalizers = []string{"example.com/held"}
		Expect(user.Create(ctx, p)).To(Succeed())
		Expect(user.Delete(ctx, p)).To(Succeed())
		Expect(user.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		p.Finalizers, p.Spec.Targets[0].Caption = nil, "the last words"
		return askedBy(func() error { return user.Update(ctx, p) })
	},
}

// askedBy does something and returns how often the webhook was asked for it.
func askedBy(do func() error) int64 {
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

	It("are each known here", func(ctx SpecContext) {
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

	It("let through what is to be judged", func(ctx SpecContext) {
		p := scheduled()
		Expect(askedBy(func() error { return user.Create(ctx, p) })).To(BeEquivalentTo(1))
		p.Spec.Targets[0].Caption = "another"
		Expect(askedBy(func() error { return user.Update(ctx, p) })).To(BeEquivalentTo(1))
	})

	for _, name := range slices.Sorted(maps.Keys(passedOver)) {
		write := passedOver[name]
		It("keep a write from the webhook that would ask it without "+name, func(ctx SpecContext) {
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
