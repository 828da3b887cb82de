// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/sandboxtest"
)

// totals is what the matrix prints in the end.
type totals struct {
	posts, kills, twice, lost, givenUp, looked int
}

func (t *totals) String() string {
	return fmt.Sprintf("%d posts, %d kills: %d published twice, %d lost, %d given up, %d settled by looking",
		t.posts, t.kills, t.twice, t.lost, t.givenUp, t.looked)
}

// judge compares what the API server says of a post with what the sandbox has.
func (t *totals) judge(ctx context.Context, tm team, p *v1alpha1.Post) {
	now := read(ctx, p)
	target := now.Status.Targets[0]
	n := tm.times(ctx, p.Spec.Targets[0].Caption)
	t.posts++
	if n > 1 {
		t.twice++
	}
	if target.Attempt.EndedAt != nil || target.Attempt.Looks > 0 || target.Attempt.Number > 1 {
		t.looked++
	}
	switch {
	case now.Status.Phase == v1alpha1.PhaseFailed && target.Reason == v1alpha1.ReasonOutcomeUnknown:
		t.givenUp++
	case now.Status.Phase != v1alpha1.PhasePosted || n == 0 || target.ExternalID == "":
		t.lost++
		GinkgoWriter.Printf("lost: %s phase %s, %d times on the platform, target %+v\n", p.Name, now.Status.Phase, n, target)
	}
}

var _ = Describe("A manager that is killed", Ordered, func() {
	var sum totals

	It("at each named point publishes each post exactly once", func(ctx SpecContext) {
		first := startManager("")
		tm := newTeam(ctx)
		first.kill()
		var posts []*v1alpha1.Post
		for _, point := range []string{"after-claim", "during-send", "after-answer", "after-record"} {
			text := "killed " + point
			if point == "during-send" {
				Expect(platform.Fault(ctx, sandboxtest.Fault{
					Platform: "x", Account: tm.account.ID, Operation: "publish", Kind: "delay", DelayMS: 1500, Times: 1,
				})).To(Succeed())
			}
			before, err := platform.Calls(ctx, "x")
			Expect(err).NotTo(HaveOccurred())
			m := startManager(point)
			posts = append(posts, tm.post(ctx, text))
			if point == "during-send" {
				Eventually(func() int {
					calls, err := platform.Calls(ctx, "x")
					Expect(err).NotTo(HaveOccurred())
					return calls["publish"]
				}).Should(BeNumerically(">", before["publish"]))
				m.kill()
			}
			Eventually(m.done).Should(BeClosed(), "the manager dies at "+point)
			sum.kills++
			attempt := read(ctx, posts[len(posts)-1]).Status.Targets[0].Attempt
			Expect(attempt).NotTo(BeNil(), "%s: the claim was stored first", point)
			if point != "after-record" {
				Expect(attempt.Outcome).To(BeEmpty(), "%s: the outcome is not recorded", point)
			}
		}
		last := startManager("")
		defer last.kill()
		finish(ctx, &sum, tm, posts)
	})

	It("at random moments publishes each post exactly once", func(ctx SpecContext) {
		kills, perKill := 4, 5
		if long {
			kills, perKill = 60, 10
		}
		m := startManager("")
		tm := newTeam(ctx)
		var posts []*v1alpha1.Post
		for range kills {
			for range perKill {
				posts = append(posts, tm.post(ctx, fmt.Sprintf("random %d", serial.Add(1))))
			}
			pause := time.NewTimer(time.Duration(50+rand.IntN(1500)) * time.Millisecond)
			<-pause.C
			m.kill()
			sum.kills++
			m = startManager("")
		}
		defer func() { m.kill() }()
		finish(ctx, &sum, tm, posts)
	})

	AfterAll(func() {
		GinkgoWriter.Println(sum.String())
		fmt.Println("crash matrix:", sum.String())
		Expect(sum.twice).To(BeZero(), "published twice")
		Expect(sum.lost).To(BeZero(), "lost")
		Expect(sum.givenUp).To(BeZero(), "given up")
	})
})

// finish waits until every post is settled and judges it.
func finish(ctx context.Context, sum *totals, tm team, posts []*v1alpha1.Post) {
	for _, p := range posts {
		Eventually(func() v1alpha1.PostPhase { return read(ctx, p).Status.Phase }).
			Should(Or(Equal(v1alpha1.PhasePosted), Equal(v1alpha1.PhaseFailed)), p.Name)
	}
	for _, p := range posts {
		sum.judge(ctx, tm, p)
	}
}
