// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// candidates returns the number of managers that have competed for the leader's Lease so far.
func candidates() int {
	log, err := os.ReadFile(inFolder("manager.log"))
	Expect(err).NotTo(HaveOccurred())
	return bytes.Count(log, []byte("Attempting to acquire leader lease"))
}

// During a rollout, managers with different numbers of shards run at once: the leader's number applies, and the others
// deliver nothing. A leader without shards delivers all posts by itself.
var _ = DescribeTable("Posts are published once while the number of shards changes", func(ctx SpecContext, from, to *version, claimedBefore, claimedAfter types.GomegaMatcher) {
	if !long && from == sharded {
		Skip("it takes more than a minute; LONG=1 runs it")
	}
	const perRound, ahead = 3, time.Minute
	start := func(v *version, identity string) *process {
		p := v.start("--leader-identity", identity)
		DeferCleanup(p.kill)
		return p
	}
	stopped, killed := start(from, "old-a"), start(from, "old-b")
	teams := make([]*team, 4)
	for i := range teams {
		teams[i] = newTeamOn(ctx, v1alpha1.PlatformX)
		DeferCleanup(teams[i].suspend)
		teams[i].probed(ctx, v1alpha1.PlatformX)
	}
	sum, before, posts := newTotals(), publishCalls(ctx, v1alpha1.PlatformX), 0
	say := func(words string, in time.Duration) (last *sent) {
		for _, tm := range teams {
			for n := range perRound {
				last = tm.say(ctx, aText, fmt.Sprintf("%s %d", words, serial.Add(1)), time.Now().Add(in+time.Duration(n)*time.Second/2), v1alpha1.PlatformX)
				posts++
			}
		}
		return last
	}
	claimed := func(p *sent, shard types.GomegaMatcher, by string) {
		GinkgoHelper()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p.Post), p.Post)).To(Succeed())
		Expect(p.Status.Targets[0].Attempt.Shard).To(shard, "claimed by a manager with the %s number of shards", by)
	}
	first := say("due before the change", 0)
	Eventually(func() bool { return over(ctx, first) }).WithTimeout(patience()).Should(BeTrue())
	claimed(first, claimedBefore, "old")
	waiting, due := say("created before the change", ahead), time.Now().Add(ahead)
	for i, old := range []*process{stopped, killed} {
		say("due while a manager is replaced", time.Second)
		running := candidates()
		start(to, fmt.Sprintf("new-%d", i))
		Eventually(candidates).Should(BeNumerically(">", running))
		if old == killed {
			old.kill()
			sum.kills++
		} else {
			old.terminate()
		}
		say("due after a manager was replaced", time.Second)
	}
	Expect(time.Now()).To(BeTemporally("<", due), "posts wait throughout the change")
	last := say("created after the change", 0)
	settle(ctx, teams...)
	for _, tm := range teams {
		sum.verifyTeam(ctx, tm)
	}
	all := sum.sum(everyPair)
	Expect(all.twice+all.lost+all.denied+all.givenUp).To(BeZero(), "published twice, lost, online and failed, or given up")
	Expect(publishCalls(ctx, v1alpha1.PlatformX)-before).To(BeNumerically("<=", posts+sum.kills), "publishing calls")
	for _, p := range []*sent{waiting, last} {
		claimed(p, claimedAfter, "new")
	}
},
	Entry("from one to four", present, sharded, BeEmpty(), Not(BeEmpty())),
	Entry("from four to one", sharded, present, Not(BeEmpty()), BeEmpty()),
)
