// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/sandboxtest"
)

// suspensionOf returns the suspension of the Team that has the name of its namespace.
func suspensionOf(ctx context.Context, namespace string) (bool, []v1alpha1.Suspension, error) {
	var t v1alpha1.Team
	err := k8s.Get(ctx, client.ObjectKey{Name: namespace}, &t)
	return t.Suspended(), t.Status.Suspensions, client.IgnoreNotFound(err)
}

var _ = Describe("A post of a suspended team", func() {
	It("waits, even past its deadline, and is published when the suspension ends", func(ctx SpecContext) {
		t := newTeam(ctx)
		owner := t.own(ctx)
		owner.Spec.Suspend = true
		Expect(k8s.Update(ctx, owner)).To(Succeed())
		stop := &installation.Suspension{}
		runManager(func(o *post.Options) {
			o.Suspension, o.SuspendAll = suspensionOf, stop
			o.StartingDeadline = 2 * time.Second
		})
		due, soon := t.post(ctx, "now"), t.post(ctx, "in a moment", at(time.Second))
		for _, p := range []*v1alpha1.Post{due, soon} {
			Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonSuspended))
		}

		By("lasting longer than posts are retried")
		// The Team controller records this; the deadlines of both posts have passed by then.
		began := time.Now().Add(-time.Minute)
		owner.Status.Suspensions = []v1alpha1.Suspension{{From: v1alpha1.NewTime(began)}}
		Expect(k8s.Status().Update(ctx, owner)).To(Succeed())
		until := read(ctx, soon).Status.Targets[0].TryUntil
		Expect(until).NotTo(BeNil())
		Eventually(time.Now).Should(BeTemporally(">", until.Time))

		By("ending in the spec, and then in the status")
		owner.Spec.Suspend = false
		Expect(k8s.Update(ctx, owner)).To(Succeed())
		Expect(owner.Suspended()).To(BeTrue(), "the end is not recorded yet")
		stop.Set(true)
		owner.Status.Suspensions[0].Until = v1alpha1.NewTimePtr(time.Now())
		Expect(k8s.Status().Update(ctx, owner)).To(Succeed())
		Expect(publishesBy(t.account)).To(BeZero(), "all teams are suspended as well")
		stop.Set(false)
		for _, p := range []*v1alpha1.Post{due, soon} {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		Expect(publishesBy(t.account)).To(Equal(2))
	})

	It("does not fail when a call in progress is rejected for longer than retries last", func(ctx SpecContext) {
		t := newTeam(ctx)
		// The rate limit ends after the deadline of the post.
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 2})
		before := publishCalls(ctx)
		began := time.Now()
		var ended atomic.Pointer[v1alpha1.Time]
		stop := &installation.Suspension{}
		runManager(func(o *post.Options) {
			o.SuspendAll, o.StartingDeadline = stop, 2*time.Second
			// Suspended as soon as the call was made.
			o.Suspension = func(ctx context.Context, namespace string) (bool, []v1alpha1.Suspension, error) {
				if namespace != t.namespace || publishCalls(ctx) == before {
					return false, nil, nil
				}
				until := ended.Load()
				return until == nil, []v1alpha1.Suspension{{From: v1alpha1.NewTime(began), Until: until}}, nil
			}
		})
		p := t.post(ctx, "refused for the moment")
		Eventually(func() *v1alpha1.Attempt {
			if targets := read(ctx, p).Status.Targets; len(targets) > 0 {
				return targets[0].Attempt
			}
			return nil
		}).Should(HaveField("Outcome", v1alpha1.OutcomeRefused))
		Expect(read(ctx, p).Status.Targets[0].State).To(Equal(v1alpha1.TargetPending), "its deadline moves on")

		Eventually(time.Now).Should(BeTemporally(">", began.Add(3*time.Second)), "without the extension, the deadline has passed")
		ended.Store(v1alpha1.NewTimePtr(time.Now()))
		stop.Set(true)
		stop.Set(false)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
	})

	It("continues with the unclaimed cards", func(ctx SpecContext) {
		t := newTeam(ctx)
		var released atomic.Bool
		stop := &installation.Suspension{}
		runManager(func(o *post.Options) {
			o.SuspendAll = stop
			// Suspended as soon as the first card was published.
			o.Suspension = func(_ context.Context, namespace string) (bool, []v1alpha1.Suspension, error) {
				return namespace == t.namespace && !released.Load() && publishesBy(t.account) > 0, nil, nil
			}
		})
		p := t.post(ctx, "", func(p *v1alpha1.Post) {
			p.Spec.Category = v1alpha1.CategoryTree
			p.Spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "one"}, {Caption: "two"}, {Caption: "three"}}}
		})
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonSuspended))
		Expect(read(ctx, p).Status.Targets[0].Cards).To(HaveLen(1), "the call that was under way is recorded")
		Expect(publishesBy(t.account)).To(Equal(1))

		released.Store(true)
		stop.Set(true)
		stop.Set(false)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(publishesBy(t.account)).To(Equal(3))
	})
})

// own creates a Team that owns the team's namespace.
func (t team) own(ctx context.Context) *v1alpha1.Team {
	GinkgoHelper()
	owner := &v1alpha1.Team{}
	owner.Name, owner.Spec.Namespace = t.namespace, t.namespace
	Expect(envtest.Own(ctx, k8s, owner)).To(Succeed())
	return owner
}
