// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

// sharing is this version with delivery.shareUploads and one upload slot for each manager. A second team can always use
// one more slot.
var sharing = configured("this version, with shared uploads", "sharing.yaml")

const (
	leading   = "leading"
	assisting = "assisting"
	// busyUpload is the time for which the leader's slots are in use.
	busyUpload = time.Minute
)

var _ = Describe("A video that two managers may upload", func() {
	teamWith := func(ctx SpecContext, file string) *team {
		tm := newTeamOn(ctx, v1alpha1.PlatformX)
		DeferCleanup(tm.suspend)
		tm.upload(ctx, file)
		tm.probed(ctx, v1alpha1.PlatformX)
		tm.verified(ctx, file)
		return tm
	}
	holder := func(ctx SpecContext, p *sent) string {
		var now v1alpha1.Post
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(p.Post), &now); err != nil || len(now.Status.Targets) == 0 {
			return ""
		}
		if prepared := now.Status.Targets[0].Prepared; prepared != nil && prepared.By != nil {
			return prepared.By.Holder
		}
		return ""
	}

	DescribeTable("is published once, wherever its holder is killed", func(ctx SpecContext, victim, point string) {
		if !long && point != post.PointAfterHold {
			Skip("it takes more than a minute; LONG=1 runs it")
		}
		sum, managers := newTotals(), map[string]*process{}
		begin := func(identity string) {
			managers[identity] = sharing.start("--leader-identity", identity)
			DeferCleanup(func() { managers[identity].kill() })
		}
		begin(leading)
		tm := teamWith(ctx, "long")
		teams := []*team{tm}
		at := time.Now().Add(busyUpload + 15*time.Second)
		if victim == assisting {
			for range 2 {
				busy := teamWith(ctx, "red")
				Expect(platform.Fault(ctx, sandboxtest.Fault{
					Platform: string(v1alpha1.PlatformX), Account: busy.accounts[v1alpha1.PlatformX].ID, Operation: "upload", Kind: "delay",
					DelayMS: int(busyUpload.Milliseconds()), Times: 1,
				})).To(Succeed())
				slow := busy.say(ctx, aPicture, fmt.Sprintf("it takes the leader's slots %d", serial.Add(1)), at, v1alpha1.PlatformX)
				Eventually(func() string { return holder(ctx, slow) }).Should(Equal(leading))
				teams = append(teams, busy)
			}
			begin(assisting)
		}
		before, heldBy := publishCalls(ctx, v1alpha1.PlatformX), ""
		var film *sent
		made := make(chan struct{})
		met := points.once(point, func() {
			<-made
			heldBy = holder(ctx, film)
			managers[victim].kill()
		})
		film = tm.say(ctx, aLongFilm, fmt.Sprintf("its holder is killed %d", serial.Add(1)), at, v1alpha1.PlatformX)
		close(made)
		Eventually(met).Should(BeClosed())
		Expect(heldBy).To(Equal(victim), "the holder when it was killed")
		sum.kills++
		if victim == leading {
			begin(assisting)
		}
		settle(ctx, teams...)
		for _, one := range teams {
			sum.verifyTeam(ctx, one)
		}
		fmt.Printf("a video whose holder (%s) was killed %s, published by the other manager: %s\n", victim, point, sum)
		all := sum.sum(everyPair)
		Expect(all.twice).To(BeZero(), "published twice")
		Expect(all.lost+all.denied+all.givenUp).To(BeZero(), "lost, online and failed, or given up")
		Expect(publishCalls(ctx, v1alpha1.PlatformX)-before).To(Equal(len(teams)), "publishing calls")
	},
		Entry("the standby, before its upload", assisting, post.PointAfterHold),
		Entry("the leader, before its upload", leading, post.PointAfterHold),
		Entry("the standby, in the middle of its upload", assisting, post.PointAfterPart),
		Entry("the standby, after its upload", assisting, post.PointAfterAhead),
	)
})
