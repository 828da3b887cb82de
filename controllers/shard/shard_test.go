// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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
})
