// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/posting/placement"
)

// sharded is this version with four shards.
var sharded = configured("this version, with four shards", "sharded.yaml")

// leaseOfShard returns the Lease of a shard, which is empty if nobody has held it.
func leaseOfShard(ctx context.Context, shard string) (lease coordinationv1.Lease) {
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "herald-shard-" + shard}
	if err := k8s.Get(ctx, key, &lease); err != nil {
		return coordinationv1.Lease{}
	}
	return lease
}

// stored returns the stored Team, which is empty if it cannot be read.
func (t *team) stored(ctx context.Context) (of v1alpha1.Team) {
	if err := k8s.Get(ctx, client.ObjectKey{Name: t.namespace}, &of); err != nil {
		return v1alpha1.Team{}
	}
	return of
}

// shardHolder returns the replica that holds a shard, or "".
func shardHolder(ctx context.Context, shard string) string {
	return ptr.Deref(leaseOfShard(ctx, shard).Spec.HolderIdentity, "")
}

// holderOfShard returns the replica that holds the shard of a team, or "".
func holderOfShard(ctx context.Context, tm *team) string {
	return shardHolder(ctx, tm.stored(ctx).Status.Shard)
}

// shardsByHolder returns the number of shards that each replica holds.
func shardsByHolder(ctx context.Context) map[string]int {
	held := map[string]int{}
	for _, shard := range placement.Names(4) {
		held[shardHolder(ctx, shard)]++
	}
	return held
}

// teamHeldByAnother creates a team in a shard of another replica than the one that delivers the posts of a given team. The
// leader would choose the shard with the smallest load, which depends on the posts that earlier specs have left.
func teamHeldByAnother(ctx SpecContext, than *team, on v1alpha1.Platform) (tm *team) {
	GinkgoHelper()
	isAnother := func(holder string) bool { return holder != "" && holder != holderOfShard(ctx, than) }
	all := placement.Names(4)
	n := slices.IndexFunc(all, func(shard string) bool { return isAnother(shardHolder(ctx, shard)) })
	Expect(n).NotTo(Equal(-1), "one replica holds all shards")
	for range 16 {
		tm = newTeamIn(ctx, all[n], on)
		DeferCleanup(tm.suspend)
		Eventually(func() string { return holderOfShard(ctx, tm) }).ShouldNot(BeEmpty())
		if isAnother(holderOfShard(ctx, tm)) {
			tm.probed(ctx, on)
			return tm
		}
	}
	Fail("the leader has assigned all teams to the shards of one replica")
	return nil
}

var _ = Describe("Posts of four shards", func() {
	DescribeTable("are published once, wherever a replica is killed", func(ctx SpecContext, at ...string) {
		if !long && len(at) > 1 {
			at = at[:1]
		}
		sum, replicas := newTotals(), map[string]*process{}
		for _, identity := range []string{"replica-a", "replica-b", "replica-c"} {
			replicas[identity] = sharded.start("--leader-identity", identity)
			DeferCleanup(func() { replicas[identity].kill() })
		}
		Eventually(func() map[string]int { return shardsByHolder(ctx) }).WithTimeout(patience()).Should(And(HaveLen(len(replicas)), Not(HaveKey(""))))
		teams := make([]*team, 6)
		for i := range teams {
			teams[i] = newTeamOn(ctx, v1alpha1.PlatformX)
			DeferCleanup(teams[i].suspend)
		}
		held := map[string]bool{}
		for _, tm := range teams {
			tm.probed(ctx, v1alpha1.PlatformX)
			Eventually(func() string { return holderOfShard(ctx, tm) }).WithTimeout(patience()).ShouldNot(BeEmpty())
			held[holderOfShard(ctx, tm)] = true
		}
		before, posts := publishCalls(ctx, v1alpha1.PlatformX), 0
		say := func(tm *team, words string, due time.Time) {
			tm.say(ctx, aText, fmt.Sprintf("%s %d", words, serial.Add(1)), due, v1alpha1.PlatformX)
			posts++
		}
		for n, point := range at {
			tm := teams[n%len(teams)]
			victim := holderOfShard(ctx, tm)
			Expect(replicas).To(HaveKey(victim))
			met := points.once(point, func() { replicas[victim].kill() })
			say(tm, "its holder is killed", time.Time{})
			Eventually(met).Should(BeClosed())
			sum.kills++
			for _, other := range teams {
				say(other, "while a replica is gone", time.Now().Add(time.Second))
			}
			replicas[victim] = replicas[victim].again()
			settle(ctx, teams...)
		}
		for _, tm := range teams {
			sum.verifyTeam(ctx, tm)
		}
		fmt.Printf("%d posts of six teams, whose four shards were held by %d replicas: %s\n", posts, len(held), sum)
		all := sum.sum(everyPair)
		Expect(all.twice).To(BeZero(), "published twice")
		Expect(all.lost+all.denied+all.givenUp).To(BeZero(), "lost, online and failed, or given up")
		Expect(publishCalls(ctx, v1alpha1.PlatformX)-before).To(BeNumerically("<=", posts+sum.kills), "publishing calls")
	},
		Entry("after its claim", post.PointAfterClaim, post.PointBeforeClaim, post.PointAfterClaim),
		Entry("after its call", post.PointAfterAnswer, post.PointAfterRecord, post.PointAfterAnswer),
	)

	It("are published while the replicas are replaced one after the other", func(ctx SpecContext) {
		sum, replicas := newTotals(), map[string]*process{}
		begin := func(identity string) {
			replicas[identity] = sharded.start("--leader-identity", identity)
			DeferCleanup(func() { replicas[identity].kill() })
		}
		begin("replica-a")
		begin("replica-b")
		tm := newTeamOn(ctx, v1alpha1.PlatformX)
		DeferCleanup(tm.suspend)
		tm.probed(ctx, v1alpha1.PlatformX)
		// The Lease of a replica of an earlier spec, which was killed, expires first.
		Eventually(func() bool { return replicas[holderOfShard(ctx, tm)] != nil }).WithTimeout(patience()).Should(BeTrue(), "a replica holds the shard")
		before, posts := publishCalls(ctx, v1alpha1.PlatformX), 0
		var handOvers []time.Duration
		for n := range 4 {
			for range 5 {
				tm.say(ctx, aText, fmt.Sprintf("during a rollout %d", serial.Add(1)), time.Now().Add(time.Second), v1alpha1.PlatformX)
				posts++
			}
			old, stopped := holderOfShard(ctx, tm), time.Now()
			replicas[old].terminate()
			begin(fmt.Sprintf("replica-%d", n))
			Eventually(func() string { return holderOfShard(ctx, tm) }).WithTimeout(patience()).ShouldNot(Or(BeEmpty(), Equal(old)))
			acquired := leaseOfShard(ctx, tm.stored(ctx).Status.Shard).Spec.AcquireTime
			handOvers = append(handOvers, acquired.Sub(stopped).Round(time.Millisecond))
		}
		settle(ctx, tm)
		sum.verifyTeam(ctx, tm)
		fmt.Printf("from a replica's SIGTERM until another one acquires its shard: %v\n", handOvers)
		all := sum.sum(everyPair)
		Expect(all.twice+all.lost+all.denied+all.givenUp).To(BeZero(), "published twice, lost, online and failed, or given up")
		Expect(publishCalls(ctx, v1alpha1.PlatformX)-before).To(Equal(posts), "publishing calls")
	})

	DescribeTable("are published once while a team gets the account of a team in another shard", func(ctx SpecContext, ofFirst, ofSecond int) {
		const shared, other = v1alpha1.PlatformX, v1alpha1.PlatformThreads
		for _, identity := range []string{"replica-a", "replica-b"} {
			DeferCleanup(sharded.start("--leader-identity", identity).kill)
		}
		Eventually(func() map[string]int { return shardsByHolder(ctx) }).WithTimeout(patience()).Should(Equal(map[string]int{"replica-a": 2, "replica-b": 2}))
		first := newTeamOn(ctx, shared)
		DeferCleanup(first.suspend)
		first.probed(ctx, shared)
		second := teamHeldByAnother(ctx, first, other)
		sum, before, posts := newTotals(), publishCallsEverywhere(ctx), map[v1alpha1.Platform]int{}
		say := func(tm *team, words string, in time.Duration, to v1alpha1.Platform) *sent {
			posts[to]++
			return tm.say(ctx, aText, fmt.Sprintf("%s %d", words, serial.Add(1)), time.Now().Add(in), to)
		}
		for n := range ofFirst {
			say(first, "by the team that had the account", time.Duration(n)*500*time.Millisecond, shared)
		}
		for n := range ofSecond {
			say(second, "elsewhere", time.Duration(n)*500*time.Millisecond, other)
		}
		second.connectTo(ctx, shared, first.accounts[shared])
		for n := range 10 {
			say(second, "by the team that gets the account", time.Duration(n)*500*time.Millisecond, shared)
		}
		moved, home := first, second
		if ofFirst > ofSecond {
			moved, home = second, first
		}
		Eventually(func(g Gomega) {
			now := moved.stored(ctx)
			g.Expect(now.Status.Move).To(HaveField("Until", Not(BeNil())))
			g.Expect(now.Suspended()).To(BeFalse())
			g.Expect(now.Status.Shard).To(Equal(home.stored(ctx).Status.Shard))
		}).WithTimeout(patience()).Should(Succeed())
		last := []*sent{say(first, "after the move", 0, shared), say(second, "after the move", 0, shared)}
		settle(ctx, first, second)
		sum.verifyTeam(ctx, first)
		sum.verifyTeam(ctx, second)
		all := sum.sum(everyPair)
		Expect(all.twice+all.lost+all.denied+all.givenUp).To(BeZero(), "published twice, lost, online and failed, or given up")
		for _, on := range []v1alpha1.Platform{shared, other} {
			Expect(publishCalls(ctx, on)-before[on]).To(Equal(posts[on]), "publishing calls on %s", on)
		}
		version := leaseOfShard(ctx, home.stored(ctx).Status.Shard).Annotations["social.herald.dev/shard-version"]
		for _, p := range last {
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p.Post), p.Post)).To(Succeed())
			Expect(p.Status.Targets[0].Attempt.Shard).To(Equal(version), "the shard's holder has claimed it")
		}
	},
		Entry("which has most of the posts, so that the other one is moved", 20, 5),
		Entry("whose own posts are due while it is moved", 5, 20),
	)
})

var _ = DescribeTable("A manager reports the shards that it holds", func(ctx SpecContext, shards int, reports types.GomegaMatcher) {
	config := managerConfiguration()
	config.Delivery.Shards, config.Metrics.BindAddress, config.Metrics.Plain = shards, ports.ForTest(GinkgoT()), true
	reporting := configured("this version, with metrics", "reporting.yaml")
	writeSections(config, reporting.configuration, "apiVersion", "kind", "leaderElection", "health", "metrics", "webhook", "media", "platforms", "delivery")
	manager := reporting.start()
	DeferCleanup(manager.kill)
	Eventually(func() (string, error) { return read(ctx, "http://"+config.Metrics.BindAddress+"/metrics") }).WithTimeout(patience()).
		Should(And(ContainSubstring("herald_leader 1\n"), reports))
},
	Entry("with four, each of them once it has listed the posts", 4, And(
		ContainSubstring(`herald_shard_held{shard="00"} 1`), ContainSubstring(`herald_shard_held{shard="03"} 1`),
		ContainSubstring(`herald_shard_takeovers_total{shard="00"} 1`), Not(ContainSubstring(`shard="04"`)),
	)),
	Entry("with one, which has no holder", 1, Not(ContainSubstring("herald_shard"))),
)
