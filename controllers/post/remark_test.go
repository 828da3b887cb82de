// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/platforms"
)

// remarking is X with a note on everything that it publishes.
type remarking struct{ fast }

func (r remarking) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	result := r.fast.Publish(ctx, job)
	result.Note = "the thumbnail was refused"
	return result
}

var _ = Describe("What a platform remarks on a post that is online", Ordered, func() {
	BeforeAll(func() {
		runManager(func(o *post.Options) {
			inner, _ := o.Platforms[v1alpha1.PlatformX].(fast)
			o.Platforms[v1alpha1.PlatformX] = remarking{inner}
		})
	})

	It("is an event, and the post is posted", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := posted(ctx, t.post(ctx, "noted"))
		Eventually(func() []string { return t.events(ctx, p) }).Should(ContainElement("PostedWithNote: target 0 (x): the thumbnail was refused"))
	})
})
