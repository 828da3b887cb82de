// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/posting/record"
)

// entries records the posts that were added to their teams' lists.
type entries struct {
	mu    sync.Mutex
	names []string
}

func (s *entries) options(o *post.Options) {
	o.Records.List = func(_ context.Context, p *v1alpha1.Post) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.names = append(s.names, p.Name)
		return nil
	}
}

func (s *entries) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.names, name)
}

// unheld records the posts that a manager writes as finished while they have no finalizer.
type unheld struct {
	mu    sync.Mutex
	names []string
}

func (u *unheld) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, part string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if p, ok := obj.(*v1alpha1.Post); ok && p.Status.Finished && !slices.Contains(p.Finalizers, v1alpha1.DeliveryFinalizer) {
				u.mu.Lock()
				u.names = append(u.names, p.Name)
				u.mu.Unlock()
			}
			return c.SubResource(part).Update(ctx, obj, opts...)
		},
	}
}

func (u *unheld) all() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.names)
}

var _ = Describe("An applied post of which nothing was sent", func() {
	DescribeTable("keeps its place when it is deleted after it was finished:", func(ctx SpecContext, phaseThen v1alpha1.PostPhase, change func(*v1alpha1.Post)) {
		k, lists, loose := newKeeping(), &entries{}, &unheld{}
		m := startDisturbed(loose.funcs(), k.options, lists.options)
		DeferCleanup(m.stop)
		acme := newTeam(ctx)
		p := acme.apply(ctx, "ended", "hello", change)
		Eventually(phase(ctx, p)).Should(Equal(phaseThen))
		Expect(read(ctx, p).Status.Finished).To(BeTrue())
		Expect(loose.all()).To(BeEmpty(), "it could vanish the moment it is finished")
		remove(ctx, p)
		Expect(k.of(ctx, acme.namespace, p.Name)).NotTo(BeNil(), "it is read by its id")
		Expect(lists.has(p.Name)).To(BeTrue(), "it is found in the lists")
		Expect(publishesBy(acme.account)).To(BeZero())
	},
		Entry("its time was missed", v1alpha1.PhaseFailed, at(-2*time.Hour)),
		Entry("it was cancelled", v1alpha1.PhaseCancelled, func(p *v1alpha1.Post) { p.Spec.Draft, p.Spec.Cancelled = true, true }),
	)

	It("goes at once where nothing is kept: without a bucket, or without a Team", func(ctx SpecContext) {
		k := newKeeping()
		runManager(k.options, func(o *post.Options) {
			o.Records.Owner = func(context.Context, string) (*v1alpha1.Team, error) { return nil, nil }
		})
		acme := newTeam(ctx)
		p := acme.apply(ctx, "ended", "hello", at(-2*time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Finalizers).To(BeEmpty())
	})
})

var _ = Describe("A finished post whose finalizer was taken off", func() {
	It("gets it again from the next manager, so that it is in the lists when it is deleted", func(ctx SpecContext) {
		k, lists := newKeeping(), &entries{}
		m := startManager(k.options, lists.options)
		acme := newTeam(ctx)
		acme.createTeam(ctx)
		p := posted(ctx, acme.post(ctx, "hello"))
		Eventually(func() *record.Record { return k.of(ctx, acme.namespace, p.Name) }).ShouldNot(BeNil())
		m.stop()

		By("releasing it, as before an uninstall")
		edit(ctx, p, func(p *v1alpha1.Post) { p.Finalizers = nil })
		runManager(k.options, lists.options)
		Eventually(func() []string { return read(ctx, p).Finalizers }).Should(ConsistOf(v1alpha1.DeliveryFinalizer))
		remove(ctx, p)
		Expect(lists.has(p.Name)).To(BeTrue())
	})
})
