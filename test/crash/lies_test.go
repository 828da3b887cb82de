// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

// liesPercent is the share of publishing calls that the platforms carry out but refuse in their response. LIES
// overrides it; 0 turns lies off.
const liesPercent = 20

// lies limits the occurrences of a fault. It exceeds the number of calls in a campaign.
const lies = 1_000_000

// liesOf returns the refusals of posts that were published, as faults of any platform, with their share in percent. A
// rate limit with an end in Meta's headers blocks its account for at least a minute, which is too long for the short
// campaign.
func liesOf() []sandboxtest.Fault {
	out := []sandboxtest.Fault{
		{Refusal: "invalid", Percent: 50},
		{Refusal: "permission", Percent: 35},
		{Status: 404, Body: "<html><body>404 Not Found</body></html>", Percent: 15},
	}
	if long {
		out = append(out, sandboxtest.Fault{Refusal: "rate_limit", RetryAfterS: 2, Percent: 5})
	}
	return out
}

// lie makes every platform publish but return a refusal, for a random share of the calls. It prints the seed, so a run
// can be repeated.
func (c *campaign) lie(ctx SpecContext) {
	percent, err := strconv.Atoi(cmp.Or(os.Getenv("LIES"), strconv.Itoa(liesPercent)))
	Expect(err).NotTo(HaveOccurred(), "LIES is a percentage, such as 20")
	if percent == 0 {
		return
	}
	c.lying = true
	seed := GinkgoRandomSeed()
	fmt.Printf("campaign: platforms falsely refuse %d %% of the publishing calls, drawn from seed %d\n", percent, seed)
	for _, on := range connected() {
		for i, f := range liesOf() {
			if on == v1alpha1.PlatformBluesky && f.Refusal == "permission" {
				continue // its permissions are not per post: the account is deactivated, and waits for an hour
			}
			// Each lie applies to a share of the calls that earlier lies did not apply to.
			f.Platform, f.Operation, f.Kind, f.Times = string(on), "publish", "publishes_and_refuses", lies
			f.Percent, f.Seed = max(1, f.Percent*percent/100), uint64(seed)+uint64(i)
			Expect(platform.Fault(ctx, f)).To(Succeed())
		}
	}
}

// lied returns the number of false refusals. It is zero after the faults are cleared.
func lied(ctx SpecContext) (times int) {
	GinkgoHelper()
	waiting, err := platform.Faults(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, f := range waiting {
		if f.Kind == "publishes_and_refuses" {
			times += lies - f.Times
		}
	}
	return times
}

// heard counts the false refusals before the faults are cleared. A campaign without any would not test them.
func (c *campaign) heard(ctx SpecContext) {
	if c.sum.lies = lied(ctx); os.Getenv("LIES") == "0" {
		Expect(c.sum.lies).To(BeZero())
		return
	}
	Expect(c.sum.lies).To(BeNumerically(">", 0), "the platform has returned false refusals")
}

// limitFor is the time for which X blocks an account whose listing lag is longer than X promises. A search that starts
// a minute before the second call would miss the first call's post, which appears in the listing before the second call
// counts as absent.
const (
	limitFor   = 70 * time.Second
	listsAfter = limitFor + 6*time.Second
)

var _ = Describe("A post that is published, reported as rejected, and listed late", func() {
	It("is detected by the second call as a duplicate", func(ctx SpecContext) {
		if !long {
			Skip("it waits for more than a minute; LONG=1 runs it")
		}
		sum, m := newTotals(), startManager()
		defer func() { m.kill() }()
		tm := newTeamOn(ctx, v1alpha1.PlatformX)
		tm.probed(ctx, v1alpha1.PlatformX)
		account := tm.accounts[v1alpha1.PlatformX].ID
		_, err := platform.Account(ctx, "x", account, map[string]any{"listing_lag_ms": listsAfter.Milliseconds()})
		Expect(err).NotTo(HaveOccurred())
		Expect(platform.Fault(ctx, sandboxtest.Fault{
			Platform: "x", Account: account, Operation: "publish", Kind: "publishes_and_refuses", Refusal: "rate_limit",
			RetryAfterS: int(limitFor.Seconds()), Times: 1,
		})).To(Succeed())
		sum.lies++
		met := points.once(post.PointAfterLookup, func() { m.kill() })
		tm.post(ctx, aText, "refused, and listed late", v1alpha1.PlatformX)
		Eventually(met).WithTimeout(2 * limitFor).Should(BeClosed())
		sum.kills++
		m = startManager()
		settle(ctx, tm)
		sum.verifyTeam(ctx, tm)
		fmt.Printf("listed too late: %s\n", sum)
		all := sum.sum(everyPair)
		Expect(all.twice).To(BeZero(), "published twice")
		Expect(all.lost+all.denied+all.givenUp).To(BeZero(), "lost, published but failed, or left to a user")
		Expect(all.attempts).To(BeNumerically(">", 1), "the refusal leads to another attempt")
	})
})

// aroundARefusal are the points between a refusal and its effect.
var aroundARefusal = []string{post.PointAfterAnswer, post.PointAfterRecord, post.PointAfterLookup}
