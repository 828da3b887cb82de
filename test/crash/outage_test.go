// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// caughtUpWithin is the maximum time from the end of an API outage until the last post that became due during it is
// published. It allows for a busy machine. If pauses were not limited to pacing.MaxRetry, they would double during the
// outage, up to three minutes.
const caughtUpWithin = 90 * time.Second

// outage returns the length of the outage, the number of posts that become due during it, and the number of teams.
func outage() (away time.Duration, posts, teams int) {
	if long {
		return 3 * time.Minute, 500, 4
	}
	return 40 * time.Second, 60, 1
}

var _ = Describe("An outage of the Kubernetes API", func() {
	It("delays the posts that become due in it until shortly after its end", func(ctx SpecContext) {
		away, posts, count := outage()
		sum, m := newTotals(), startManager()
		defer func() { m.kill() }()
		teams := make([]*team, count)
		for i := range teams {
			teams[i] = newTeam(ctx)
		}
		// All posts exist and are in the manager's cache before the first one is due.
		first := time.Now().Add(10*time.Second + time.Duration(posts)*50*time.Millisecond)
		to := aText.targets()
		for n := range posts {
			at := first.Add(away * time.Duration(n) / time.Duration(posts))
			teams[n%count].say(ctx, aText, fmt.Sprintf("due in an outage %d", serial.Add(1)), at, to[n/count%len(to)])
		}
		Expect(time.Until(first)).To(BeNumerically(">", 0), "the posts were created in time")
		wait(time.Until(first.Add(-time.Second)))
		apiServer.kill()
		wait(time.Until(first.Add(away)))
		apiServer.again(ctx)
		back := time.Now()
		settle(ctx, teams...)
		for _, tm := range teams {
			sum.verifyTeam(ctx, tm)
		}
		fmt.Printf("outage of %s: %s\n", away, sum)
		all := sum.sum(everyPair)
		Expect(all.twice).To(BeZero(), "published twice")
		Expect(all.lost+all.denied).To(BeZero(), "lost, or published but failed")
		last := lastShown(ctx, teams...)
		fmt.Printf("outage of %s: the last of %d posts was published %s after the API responded again\n", away, posts, last.Sub(back).Round(time.Millisecond))
		Expect(last).To(BeTemporally("<=", back.Add(caughtUpWithin)))
		Expect(last).To(BeTemporally(">", back), "the API was unavailable while posts became due")
	})
})

// lastShown returns when the teams' last post was published.
func lastShown(ctx SpecContext, teams ...*team) (last time.Time) {
	for _, tm := range teams {
		for _, posts := range tm.shown(ctx) {
			for _, p := range posts {
				if p.CreatedAt.After(last) {
					last = p.CreatedAt
				}
			}
		}
	}
	return last
}
