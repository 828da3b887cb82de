// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"time"

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

	It("is not needed for its posts to have a shard", func(ctx SpecContext) {
		team := unstored(ctx)
		Eventually(labelOf(ctx, newPost(ctx, team, ""))).Should(Equal("00"), "a manager has to report that nobody owns the post")
		Consistently(labelOf(ctx, newPost(ctx, team, "02"))).WithTimeout(time.Second).Should(Equal("02"))
	})

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
