// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/hack/local/ports"
)

// sharded is this version with four shards.
var sharded = configured("this version, with four shards", "sharded.yaml")

// holderOfShard returns the replica that holds the shard of a team, or "".
func holderOfShard(ctx context.Context, tm *team) string {
	var of v1alpha1.Team
	if err := k8s.Get(ctx, client.ObjectKey{Name: tm.namespace}, &of); err != nil || of.Status.Shard == "" {
		return ""
	}
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "herald-shard-" + of.Status.Shard}
	if err := k8s.Get(ctx, key, &lease); err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

var _ = Describe("Posts of four shards with three replicas", func() {
	DescribeTable("are published once, wherever a replica is killed", func(ctx SpecContext, at ...string) {
		if !long && len(at) > 1 {
			at = at[:1]
		}
		sum, replicas := newTotals(), map[string]*process{}
		for _, identity := range []string{"replica-a", "replica-b", "replica-c"} {
			replicas[identity] = sharded.start("--leader-identity", identity)
			DeferCleanup(func() { replicas[identity].kill() })
		}
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
		Eventually(func() string { return holderOfShard(ctx, tm) }).WithTimeout(patience()).ShouldNot(BeEmpty())
		before, posts := publishCalls(ctx, v1alpha1.PlatformX), 0
		for n := range 4 {
			for range 5 {
				tm.say(ctx, aText, fmt.Sprintf("during a rollout %d", serial.Add(1)), time.Now().Add(time.Second), v1alpha1.PlatformX)
				posts++
			}
			old := holderOfShard(ctx, tm)
			replicas[old].terminate()
			begin(fmt.Sprintf("replica-%d", n))
			Eventually(func() string { return holderOfShard(ctx, tm) }).WithTimeout(patience()).ShouldNot(Or(BeEmpty(), Equal(old)))
		}
		settle(ctx, tm)
		sum.verifyTeam(ctx, tm)
		all := sum.sum(everyPair)
		Expect(all.twice+all.lost+all.denied+all.givenUp).To(BeZero(), "published twice, lost, online and failed, or given up")
		Expect(publishCalls(ctx, v1alpha1.PlatformX)-before).To(Equal(posts), "publishing calls")
	})
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
