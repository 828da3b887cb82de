// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("Pace", func() {
	It("lets the other posts of a connection wait that its platform limits, also after a restart", func(ctx SpecContext) {
		t := newTeam(ctx)
		m := startManager(interceptor.Funcs{})
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 4})
		before, err := platform.Calls(ctx, "x")
		Expect(err).NotTo(HaveOccurred())
		first := t.post(ctx, "limited")
		var conn v1alpha1.Connection
		Eventually(func() *v1alpha1.Time {
			Expect(k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "x"}, &conn)).To(Succeed())
			return conn.Status.RateLimitedUntil
		}).ShouldNot(BeNil())
		m.stop()
		m = startManager(interceptor.Funcs{})
		defer m.stop()
		var others []*v1alpha1.Post
		for i := range 5 {
			others = append(others, t.post(ctx, fmt.Sprintf("waits %d", i)))
		}
		for _, p := range append(others, first) {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
			Expect(read(ctx, p).Status.Targets[0].PostedAt.Time).To(BeTemporally(">=", conn.Status.RateLimitedUntil.Time))
		}
		after, err := platform.Calls(ctx, "x")
		Expect(err).NotTo(HaveOccurred())
		Expect(after["publish"]-before["publish"]).To(Equal(7), "one call that was refused, then one for each post")
	})

	It("keeps room for a team's single post while another team's calls are slow", func(ctx SpecContext) {
		greedy, small := newTeam(ctx), newTeam(ctx)
		var slow []*v1alpha1.Post
		m := startManager(interceptor.Funcs{}, func(o *post.Options) { o.Workers = 4 })
		defer m.stop()
		for i := range 8 {
			name := fmt.Sprintf("slow-%d", i)
			account := greedy.connect(ctx, name)
			team{account: account}.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 1500})
			slow = append(slow, greedy.post(ctx, name, at(2*time.Second), func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = name }))
		}
		single := small.post(ctx, "single", at(2500*time.Millisecond))
		Eventually(phase(ctx, single)).Should(Equal(v1alpha1.PhasePosted))
		late := read(ctx, single).Status.Targets[0].PostedAt.Sub(single.Spec.ScheduledAt.Time)
		for _, p := range slow {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		last := slow[0].Spec.ScheduledAt.Time
		for _, p := range slow {
			if at := read(ctx, p).Status.Targets[0].PostedAt; at.After(last) {
				last = at.Time
			}
		}
		Expect(single.Spec.ScheduledAt.Add(late)).To(BeTemporally("<", last), "it did not wait for the other team's calls")
	})
})
