// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
)

var _ = Describe("A claim that the API server does not store whole", func() {
	// dropping removes the targets' state from the response to the nth claim in a team's namespace, like an API server
	// with a CRD that does not have the field.
	dropping := func(nth int32, t team) interceptor.Funcs {
		var claims atomic.Int32
		return interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			claimed := obj.(*v1alpha1.Post).Status.DeepCopy()
			if err := c.SubResource(sub).Update(ctx, obj, opts...); err != nil {
				return err
			}
			for i := range claimed.Targets {
				if a := claimed.Targets[i].Attempt; a != nil && a.Outcome == "" && obj.GetNamespace() == t.namespace && claims.Add(1) == nth {
					obj.(*v1alpha1.Post).Status.Targets[i].State = ""
				}
			}
			return nil
		}}
	}

	It("sends nothing, and says why; the next one is sent", func(ctx SpecContext) {
		t := newTeam(ctx)
		m := startDisturbed(dropping(1, t))
		defer m.stop()
		p := posted(ctx, t.post(ctx, "claimed twice, sent once"))
		Expect(publishesBy(t.account)).To(Equal(1))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(2))
		Eventually(func() []string { return t.events(ctx, p) }).Should(ContainElement(And(
			HavePrefix("RecordDropped: "), ContainSubstring("posts.social.herald.dev that it serves is older than this program"))))
	})

	It("holds up a tree, which goes on where it stopped", func(ctx SpecContext) {
		t := newTeam(ctx)
		m := startDisturbed(dropping(2, t))
		defer m.stop()
		posted(ctx, t.post(ctx, "", cards("the first card", "the second card", "the third card")))
		Expect(t.published(ctx)).To(Equal([]string{"the first card", "the second card", "the third card"}))
		Expect(publishesBy(t.account)).To(Equal(3))
	})
})
