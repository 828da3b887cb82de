// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A team", func() {
	It("gets a shard, and its posts the label", func(ctx SpecContext) {
		team := newTeam(ctx)
		applied := newPost(ctx, team, "")
		Eventually(shardOf(ctx, team)).ShouldNot(BeEmpty())
		shard := shardOf(ctx, team)()
		Eventually(labelOf(ctx, applied)).Should(Equal(shard))
		Eventually(labelOf(ctx, newPost(ctx, team, ""))).Should(Equal(shard), "a post that was applied later")
		Eventually(labelOf(ctx, newPost(ctx, team, "77"))).Should(Equal(shard), "a wrong label is corrected")
		Expect(read(ctx, team).Status.Suspensions).To(BeEmpty(), "a team without a shard has no claims to wait for")
	})

	DescribeTable("is not needed for its posts to have a shard", func(ctx SpecContext, reason, label, want string) {
		team := unstored(ctx)
		post := newPost(ctx, team, label)
		Eventually(labelOf(ctx, newPost(ctx, team, ""))).Should(Equal("00"), "a manager has to report that nobody owns the post")
		Eventually(labelOf(ctx, post)).Should(Equal(want), reason)
	},
		Entry("the first shard", "it exists", "00", "00"),
		Entry("the last shard", "its holder reports the post as well", "03", "03"),
		Entry("a shard that does not exist", "nobody holds it since the number of shards was lowered", "04", "00"),
		Entry("not a shard", "anyone may apply a post with any label", "north", "00"),
	)

	It("is moved to the shard of a team that shares its account", Serial, func(ctx SpecContext) {
		first := newTeam(ctx)
		Eventually(shardOf(ctx, first)).ShouldNot(BeEmpty())
		home := shardOf(ctx, first)()
		for range 3 {
			newPost(ctx, first, home)
		}
		connect(ctx, first, "shared")
		second := newTeam(ctx)
		Eventually(shardOf(ctx, second)).ShouldNot(Or(BeEmpty(), Equal(home)), "it has fewer posts")
		from := shardOf(ctx, second)()
		post := newPost(ctx, second, from)
		connect(ctx, second, "shared")
		Eventually(shardOf(ctx, second)).Should(Equal(home))
		now := read(ctx, second)
		Expect(labelOf(ctx, post)()).To(Equal(home), "a move ends when all posts are labelled")
		Expect(now.Status.Move.From).To(Equal(from))
		Expect(now.Status.Suspensions).To(HaveLen(1))
		Expect(now.Status.Suspensions[0].Until).To(BeNil(), "the controller of suspensions, which does not run here, resumes the team")
		Expect(now.Suspended()).To(BeTrue())
		Expect(shardOf(ctx, first)()).To(Equal(home))
	})

	It("remains suspended while posts cannot be labelled, and other posts are", func(ctx SpecContext) {
		team := newTeam(ctx)
		Eventually(shardOf(ctx, team)).ShouldNot(BeEmpty())
		from, to := shardOf(ctx, team)(), "00"
		if from == to {
			to = "01"
		}
		stuck, other := newPost(ctx, team, from), newPost(ctx, team, from)
		annotate := func(value string) {
			GinkgoHelper()
			patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, rejected, value)
			Expect(k8s.Patch(ctx, stuck, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		}
		annotate(`"yes"`)
		patch := fmt.Sprintf(`{"status":{"shard":%q,"move":{"from":%q,"since":"2026-11-20T12:00:00Z"}}}`, to, from)
		Expect(k8s.Status().Patch(ctx, team, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		Eventually(labelOf(ctx, other)).Should(Equal(to), "it does not wait for the post before it")
		Expect(labelOf(ctx, stuck)()).To(Equal(from))
		Expect(read(ctx, team).Moving()).To(BeTrue(), "the next holder would not find the calls of the other post")

		annotate("null")
		Eventually(shardOf(ctx, team)).Should(Equal(to), "the move is tried again")
		Expect(labelOf(ctx, stuck)()).To(Equal(to))
	})
})
