// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/herald-social/herald/api/v1alpha1"
)

var _ = DescribeTable("A sweep counts as successful only if all due work was done", func(ctx SpecContext, breaks, mends func(*desk)) {
	d := newDesk(ctx)
	swept := func() time.Time {
		return time.UnixMilli(int64(1000 * testutil.ToFloat64(d.Metrics.swept))).UTC()
	}
	d.post(ctx, "old", 9*day)
	Expect(d.sweep(ctx)).To(Succeed())
	first := d.clock.Now()
	Expect(swept()).To(BeTemporally("~", first, time.Second))

	breaks(d)
	d.clock.Step(hour)
	Expect(d.sweep(ctx)).NotTo(Succeed())
	for range 3 {
		d.clock.Step(sweepEvery)
		_ = d.sweep(ctx) // some of its steps run once an hour
		Expect(swept()).To(BeTemporally("~", first, time.Second), "the failed hourly step keeps the sweep incomplete")
	}
	Expect(testutil.ToFloat64(d.Metrics.lag)).To(BeZero(), "an unknown lag is not reported")

	mends(d)
	d.sweepAfter(ctx, hour)
	Expect(swept()).To(BeTemporally("~", d.clock.Now(), time.Second))
},
	Entry("posts cannot be listed, so due posts are unknown",
		func(d *desk) { d.reads.fails = errors.New("posts is forbidden") }, func(d *desk) { d.reads.fails = nil }),
	Entry("expired posts cannot be deleted from the archive, in the hourly sweep",
		func(d *desk) { d.foreign = errors.New("the bucket is another's") }, func(d *desk) { d.foreign = nil }),
)

var _ = It("The lag of a post that cannot leave grows, however often it is retried", func(ctx SpecContext) {
	d := newDesk(ctx)
	lag := func() time.Duration { return time.Duration(testutil.ToFloat64(d.Metrics.lag)) * time.Second }
	d.post(ctx, "due", 2*day)
	d.post(ctx, "next", 2*day-hour)
	record := d.shelf.Record
	d.shelf.Record = func(context.Context, *v1alpha1.Post) error { return errors.New("the store is unavailable") }
	for range int(2 * hour / sweepEvery) {
		_ = d.sweep(ctx) // failed posts are retried after a minute, which is every second sweep
		d.clock.Step(sweepEvery)
	}
	Expect(d.sweep(ctx)).NotTo(Succeed())
	Expect(lag()).To(Equal(2 * hour))
	d.shelf.Record = record
	d.sweepAfter(ctx, retryAfter)
	Expect(d.stored(ctx)).To(BeEmpty())
	Expect(lag()).To(BeZero())
})
