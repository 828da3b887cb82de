// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive/lists"
)

// long is longer than these specs' posts stay in the cluster and the archive, and longer than records are kept after
// that.
const long = 20 * day

var _ = Describe("The record of an applied post that finished long ago", func() {
	var d *desk
	var post *v1alpha1.Post

	// old stores a post's record when it is finished, and lets its time pass.
	old := func(ctx SpecContext) {
		d = newDesk(ctx)
		d.clock.SetTime(time.Now())
		post = d.post(ctx, "launch", 0, applied)
		Expect(d.shelf.Record(ctx, post)).To(Succeed())
		d.clock.Step(long)
	}
	// gone deletes the object as kubectl does. The post reconciler then adds it to the lists.
	gone := func(ctx SpecContext) {
		Expect(d.shelf.Record(ctx, post)).To(Succeed())
		Expect(d.shelf.List(ctx, d.team, post)).To(Succeed())
		d.lose(ctx, post)
	}
	// hourly sweeps once an hour for the given duration.
	hourly := func(ctx SpecContext, during time.Duration) {
		for range int(during / hour) {
			d.sweepAfter(ctx, hour)
		}
	}

	It("remains when the team archives the post, in case it is applied again", func(ctx SpecContext) {
		old(ctx)
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(d.team), d.team)).To(Succeed())
		d.team.Spec.Retention.Applied = true
		Expect(k8s.Update(ctx, d.team)).To(Succeed())
		d.restart()
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.stored(ctx)).To(BeEmpty())
		Expect(d.listed(ctx)).To(ConsistOf("launch"))
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
	})

	It("remains when a manifest is pruned, and is deleted once neither the cluster nor a list has had the post for two days", func(ctx SpecContext) {
		old(ctx)
		gone(ctx)
		d.restart()
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"), "a listed post can be read by its id")
		hourly(ctx, 23*hour)
		Expect(d.listed(ctx)).To(ConsistOf("launch"))
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
		hourly(ctx, 2*hour)
		Expect(d.listed(ctx)).To(BeEmpty())
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
		hourly(ctx, 46*hour)
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
		hourly(ctx, 2*day)
		Expect(d.recorded(ctx, "launch")).To(BeEmpty())
	})

	It("is kept in a rebuilt cluster until its manifests are applied", func(ctx SpecContext) {
		old(ctx)
		d.lose(ctx, post)
		for range 3 { // a manager that was upgraded or crashed starts with a check of all records
			d.restart()
			Expect(d.sweep(ctx)).To(Succeed())
			Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
			d.clock.Step(hour)
		}
		d.post(ctx, "launch", 0, applied)
		hourly(ctx, 5*day)
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
	})

	It("is kept there even if its retention expired while no manager ran", func(ctx SpecContext) {
		old(ctx)
		gone(ctx)
		d.clock.Step(2 * day)
		d.restart()
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(d.listed(ctx)).To(BeEmpty())
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
	})

	It("is kept for two more days if the post was applied again in between", func(ctx SpecContext) {
		old(ctx)
		d.lose(ctx, post)
		hourly(ctx, 40*hour)
		back := d.post(ctx, "launch", 0, applied)
		hourly(ctx, 30*hour)
		d.lose(ctx, back)
		hourly(ctx, 40*hour)
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
		hourly(ctx, 2*day)
		Expect(d.recorded(ctx, "launch")).To(BeEmpty())
	})

	It("is compared with rebuilt lists if a list file is damaged", func(ctx SpecContext) {
		old(ctx)
		d.shelf.Lists.Shrink(2, 2, 4)
		for i := range 5 {
			d.post(ctx, fmt.Sprint("young-", i), 3*day)
		}
		Expect(d.sweep(ctx)).To(Succeed())
		d.damage(ctx)
		d.lose(ctx, post)
		hourly(ctx, day)
		view, err := lists.NewReader(bucket, 1<<20).Open(ctx, lists.Team(d.of()), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(view.Posts()).To(Equal(6), "the archived posts, and one with an older record")
		Expect(d.recorded(ctx, "launch")).To(ConsistOf("launch"))
	})
})
