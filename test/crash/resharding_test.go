// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// During a rollout, managers with different numbers of shards run at once: the leader's number applies, and the others
// deliver nothing. The one manager that leads without shards delivers all posts.
var _ = DescribeTable("Posts are published once while the number of shards changes", func(ctx SpecContext, from, to *version, claimedIn types.GomegaMatcher) {
	const perRound = 3
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
	// These posts wait throughout the change.
	waiting := say("created before the change", 30*time.Second)
	say("due before the change", 0)
	for i, old := range []*process{stopped, killed} {
		say("due while a manager is replaced", time.Second)
		start(to, fmt.Sprintf("new-%d", i))
		if old == killed {
			old.kill()
			sum.kills++
		} else {
			old.terminate()
		}
		say("due after a manager was replaced", time.Second)
	}
	last := say("created after the change", 0)
	settle(ctx, teams...)
	for _, tm := range teams {
		sum.verifyTeam(ctx, tm)
	}
	all := sum.sum(everyPair)
	Expect(all.twice+all.lost+all.denied+all.givenUp).To(BeZero(), "published twice, lost, online and failed, or given up")
	Expect(publishCalls(ctx, v1alpha1.PlatformX)-before).To(BeNumerically("<=", posts+sum.kills), "publishing calls")
	for _, p := range []*sent{waiting, last} {
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p.Post), p.Post)).To(Succeed())
		Expect(p.Status.Targets[0].Attempt.Shard).To(claimedIn, "the managers with the new number of shards have claimed it")
	}
},
	Entry("from one to four", present, sharded, Not(BeEmpty())),
	Entry("from four to one", sharded, present, BeEmpty()),
)
