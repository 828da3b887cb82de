// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/apiclock"
)

// behind is a clock that is 61 seconds behind.
type behind struct{ clock.RealClock }

func (b behind) Now() time.Time                  { return b.RealClock.Now().Add(-61 * time.Second) }
func (b behind) Since(t time.Time) time.Duration { return b.Now().Sub(t) }

var _ = Describe("A manager whose clock is 61 seconds behind", func() {
	It("publishes what is for now, and what is scheduled at its time by the API's clock", func(ctx SpecContext) {
		now := apiclock.New(apiclock.Options{Base: behind{}})
		config := rest.CopyConfig(env.Config)
		config.Wrap(now.Wrap)
		watching, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- now.Watch(watching, config) }()
		DeferCleanup(func() {
			stop()
			Eventually(ended).Should(Receive(BeNil()))
		})
		Eventually(func() error { return now.Check(nil) }).Should(Succeed())

		t := newTeam(ctx)
		runManager(func(o *post.Options) { o.Clock = now })
		due, later := t.post(ctx, "now"), t.post(ctx, "in a moment", at(3*time.Second))
		for _, p := range []*v1alpha1.Post{due, later} {
			Eventually(phase(ctx, p), 20*time.Second).Should(Equal(v1alpha1.PhasePosted), "an uncorrected manager would wait for a minute")
		}
		started := read(ctx, later).Status.Targets[0].Attempt.StartedAt
		Expect(started.Time).To(BeTemporally("~", later.Spec.ScheduledAt.Time, 10*time.Second), "the attempt is dated by the API's clock")
		Expect(publishesBy(t.account)).To(Equal(2))
	})
})
