// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
)

// crowded returns the number of a crowd's posts and teams, and the number of times the leader is killed around the
// crowd's time. Each team has one account, and at most ten posts per account are armed for the same time.
func crowded() (posts, teams, kills int) {
	if long {
		return 1000, 100, 20
	}
	return 60, 6, 3
}

// killsFrom is the time before the crowd's at which the first leader is killed. Posts are armed 15 s before the crowd's
// time.
const killsFrom = 12 * time.Second

// arming is this version with delivery.armCrowds.
var arming = configured("this version, with crowds armed", "arming.yaml")

var _ = Describe("A crowd", func() {
	DescribeTable("is published once, wherever its leader is killed", func(ctx SpecContext, last string) {
		if !long && last == post.PointBeforeOpen {
			Skip("it takes more than a minute; LONG=1 runs it")
		}
		posts, count, kills := crowded()
		sum, m := newTotals(), arming.start()
		defer func() { m.kill() }()
		teams := make([]*team, count)
		for i := range teams {
			teams[i] = newTeamOn(ctx, v1alpha1.PlatformX)
			teams[i].probed(ctx, v1alpha1.PlatformX)
		}
		before := publishCalls(ctx, v1alpha1.PlatformX)
		at := time.Now().Add(25*time.Second + time.Duration(posts)*30*time.Millisecond).Truncate(time.Second)
		killAt := func(point string, by time.Time) {
			killed := m
			met := points.once(point, func() { killed.kill() })
			select {
			case <-met:
			case <-time.After(time.Until(by)):
				if points.cancel() {
					killed.kill()
				} else {
					<-met
				}
			}
			sum.kills++
			m = killed.again()
		}
		for n := range posts {
			teams[n%count].say(ctx, aText, fmt.Sprintf("one of a crowd %d", serial.Add(1)), at, v1alpha1.PlatformX)
		}
		Expect(time.Until(at)).To(BeNumerically(">", killsFrom), "the posts were created in time")
		killAt(post.PointAfterArm, at.Add(-killsFrom))
		for n := range kills - 3 {
			wait(time.Until(at.Add(killsFrom * time.Duration(n-kills) / time.Duration(kills))))
			m.kill()
			m = m.again()
			sum.kills++
		}
		Eventually(func() int { return armed(ctx, teams...) }).WithTimeout(time.Until(at)).WithPolling(time.Second).
			Should(BeNumerically(">", 0), "posts that are claimed ahead")
		killAt(last, at.Add(2*time.Second))
		killAt(post.PointAfterClaim, at.Add(5*time.Second))
		settle(ctx, teams...)
		for _, tm := range teams {
			sum.verifyTeam(ctx, tm)
		}
		fmt.Printf("crowd of %d, the leader killed %d times, at last %s: %s\n", posts, sum.kills, last, sum)
		all := sum.sum(everyPair)
		Expect(all.twice).To(BeZero(), "published twice")
		Expect(all.lost+all.denied).To(BeZero(), "lost, or published but failed")
		Expect(publishCalls(ctx, v1alpha1.PlatformX) - before).To(BeNumerically(">=", posts))
	},
		Entry("before its group is opened", post.PointBeforeOpen),
		Entry("after its group was opened", post.PointAfterOpen),
	)
})

// armed returns the number of the teams' posts that are claimed in a group.
func armed(ctx SpecContext, teams ...*team) (n int) {
	for _, tm := range teams {
		all, err := tm.all(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, p := range all {
			if len(p.Status.Targets) > 0 && p.Status.Targets[0].Attempt != nil && p.Status.Targets[0].Attempt.Group != "" {
				n++
			}
		}
	}
	return n
}
