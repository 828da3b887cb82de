// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

// totals is what the matrix prints in the end.
type totals struct {
	posts, kills, cuts, twice, lost, givenUp int
	// attempts is how many calls the ledgers allow.
	attempts int
}

func (t *totals) String() string {
	return fmt.Sprintf("%d posts, %d kills, %d cuts: %d published twice, %d lost, %d given up, %d settled by looking",
		t.posts, t.kills, t.cuts, t.twice, t.lost, t.givenUp, settledByLooking())
}

// settledByLooking counts what the managers' log says about looks that ended
// the doubt.
func settledByLooking() int {
	log, err := os.ReadFile(filepath.Join(folder, "manager.log"))
	Expect(err).NotTo(HaveOccurred())
	n := 0
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("looked for a call whose answer was lost")) && !bytes.Contains(line, []byte(`outcome=""`)) {
			n++
		}
	}
	return n
}

// judge compares what the API server says of each post with what the sandbox has.
func (t *totals) judge(ctx context.Context, tm team, posts []*v1alpha1.Post) {
	type words struct{ on, text string }
	wanted, ids := map[words]int{}, map[string]string{}
	for _, p := range posts {
		for _, target := range p.Spec.Targets {
			wanted[words{target.ConnectionRef.Name, target.Caption}]++
		}
	}
	for _, p := range posts {
		t.posts++
		for i, target := range read(ctx, p).Status.Targets {
			spec := p.Spec.Targets[i]
			want := wanted[words{spec.ConnectionRef.Name, spec.Caption}]
			n := tm.times(ctx, spec)
			t.attempts += int(target.Attempt.Number)
			if n > want {
				t.twice++
				GinkgoWriter.Printf("published %d times, not %d: %s %q %+v %+v\n", n, want, p.Name, spec.Caption, target, target.Attempt)
			}
			id := spec.ConnectionRef.Name + "/" + target.ExternalID
			switch other, claimed := ids[id]; {
			case target.Phase == v1alpha1.PhaseFailed && target.Reason == v1alpha1.ReasonOutcomeUnknown:
				t.givenUp++
			case target.Phase != v1alpha1.PhasePosted, n < want, target.ExternalID == "", claimed:
				t.lost++
				GinkgoWriter.Printf("lost: %s %q, %d times on the platform, target %+v; %s has the same id\n", p.Name, spec.Caption, n, target, other)
			}
			ids[id] = p.Name
		}
	}
}

// protocol lists the named points, in order.
var protocol = []string{post.PointBeforeClaim, post.PointAfterClaim, post.PointAfterAnswer, post.PointAfterRecord}

var _ = Describe("The crash matrix", Ordered, func() {
	var sum totals
	var m *process
	var tm team
	var posts, trees []*v1alpha1.Post
	var callsBefore int

	BeforeAll(func(ctx SpecContext) {
		callsBefore = publishCalls(ctx)
		m = startManager()
		tm = newTeam(ctx)
	})

	// publish makes a post and waits until it has met its fate.
	publish := func(ctx SpecContext, to v1alpha1.Platform, text string, met <-chan struct{}) {
		posts = append(posts, tm.post(ctx, text, to))
		Eventually(met).Should(BeClosed(), "%s on %s", text, to)
	}

	It("kills the manager at each point", func(ctx SpecContext) {
		for _, to := range publishers {
			for _, point := range protocol {
				publish(ctx, to, "killed "+point, points.once(point, func() { m.kill() }))
				sum.kills++
				m = startManager()
			}
		}
	})

	It("kills the manager at each point of a post to all platforms", func(ctx SpecContext) {
		for _, point := range protocol {
			met := points.once(point, func() { m.kill() })
			posts = append(posts, tm.post(ctx, "everywhere, killed "+point, publishers...))
			Eventually(met).Should(BeClosed(), point)
			sum.kills++
			m = startManager()
		}
	})

	It("kills the manager at each point of the first and of the second card of a tree", func(ctx SpecContext) {
		onto := chains
		if !long {
			onto = chains[:1]
		}
		for _, to := range onto {
			for _, point := range protocol {
				for _, second := range []bool{false, true} {
					dead := killInTree(point, second, m)
					trees = append(trees, tm.tree(ctx, fmt.Sprintf("tree, killed %s, second %t", point, second), to))
					Eventually(dead).Should(BeClosed(), "%s on %s", point, to)
					sum.kills++
					m = startManager()
				}
			}
		}
		trees = append(trees, tm.tree(ctx, "tree on both", chains...))
	})

	It("kills the manager between two posts of the same words", func(ctx SpecContext) {
		// X and Facebook refuse the same words twice; Threads shows both.
		for _, point := range protocol {
			text := "the same words, killed " + point
			posts = append(posts, tm.post(ctx, text, v1alpha1.PlatformThreads))
			publish(ctx, v1alpha1.PlatformThreads, text, points.once(point, func() { m.kill() }))
			sum.kills++
			m = startManager()
		}
	})

	It("kills the manager between what it prepared and the claim", func(ctx SpecContext) {
		publish(ctx, v1alpha1.PlatformThreads, "killed after the container", points.once(post.PointAfterPrepare, func() { m.kill() }))
		sum.kills++
		m = startManager()
	})

	It("kills the manager between a look and its record", func(ctx SpecContext) {
		for _, to := range publishers {
			Expect(platform.Fault(ctx, sandboxtest.Fault{
				Platform: string(to), Account: tm.accounts[to].ID, Operation: "publish", Kind: "drop_after", Times: 1,
			})).To(Succeed())
			publish(ctx, to, "killed after a look", points.once(post.PointAfterLook, func() { m.kill() }))
			sum.kills++
			m = startManager()
		}
	})

	It("kills the manager in the middle of a call", func(ctx SpecContext) {
		for _, to := range publishers {
			Expect(platform.Fault(ctx, sandboxtest.Fault{
				Platform: string(to), Account: tm.accounts[to].ID, Operation: "publish", Kind: "delay", DelayMS: 1500, Times: 1,
			})).To(Succeed())
			before := publishCalls(ctx)
			posts = append(posts, tm.post(ctx, "killed during the call", to))
			Eventually(func() int { return publishCalls(ctx) }).Should(BeNumerically(">", before))
			m.kill()
			sum.kills++
			m = startManager()
		}
	})

	It("cuts the manager off, either way, at each point", func(ctx SpecContext) {
		holds := []time.Duration{3 * time.Second}
		if long {
			// Longer than the lease: the manager ends itself, and another begins.
			holds = append(holds, 14*time.Second)
		}
		for _, hold := range holds {
			for _, link := range []struct {
				name string
				*proxy
			}{{"the API server", toKubernetes}, {"the platform", toPlatform}} {
				for _, way := range []cut{requestsLost, answersLost} {
					for i, point := range protocol {
						onto := publishers
						if !long {
							onto = publishers[i%len(publishers):][:1]
						}
						for _, to := range onto {
							publish(ctx, to, fmt.Sprintf("cut off from %s, way %d, %s, for %s", link.name, way, point, hold),
								points.once(point, func() { link.set(way) }))
							wait(hold)
							link.set(open)
							sum.cuts++
							m = revive(m)
						}
					}
				}
			}
		}
	})

	It("holds one of two managers at each point until its time to send is over", func(ctx SpecContext) {
		held, onto := protocol, publishers
		if !long {
			held, onto = []string{post.PointAfterClaim}, publishers[:1]
		}
		m.kill()
		twins := []*process{startManager("--leader-elect=false"), startManager("--leader-elect=false")}
		for _, point := range held {
			for _, to := range onto {
				publish(ctx, to, "held "+point, points.once(point, func() { wait(sendWindow + 3*time.Second) }))
				sum.cuts++
			}
		}
		twins[0].kill()
		twins[1].kill()
		m = startManager()
	})

	It("lets two managers work at once, and kills one or the other", func(ctx SpecContext) {
		n := 20
		if long {
			n = 200
		}
		twins := []*process{startManager("--leader-elect=false"), startManager("--leader-elect=false")}
		m.kill()
		for i := range n {
			posts = append(posts, tm.post(ctx, fmt.Sprintf("twins %d", i), onto(i)...))
			if i%20 == 10 {
				k := rand.IntN(2)
				twins[k].kill()
				sum.kills++
				twins[k] = startManager("--leader-elect=false")
			}
		}
		wait(2 * time.Second)
		twins[0].kill()
		twins[1].kill()
		m = startManager()
	})

	It("kills the manager at random moments", func(ctx SpecContext) {
		kills, perKill := 3, 5
		if long {
			kills, perKill = 60, 10
		}
		for range kills {
			for i := range perKill {
				posts = append(posts, tm.post(ctx, fmt.Sprintf("random %d", serial.Add(1)), onto(i)...))
			}
			wait(time.Duration(50+rand.IntN(1500)) * time.Millisecond)
			m.kill()
			sum.kills++
			m = startManager()
		}
	})

	It("ends with each post published exactly once", func(ctx SpecContext) {
		for _, p := range posts {
			Eventually(func() v1alpha1.PostPhase { return read(ctx, p).Status.Phase }).
				Should(Or(Equal(v1alpha1.PhasePosted), Equal(v1alpha1.PhaseFailed)), "%s %q", p.Name, p.Spec.Targets[0].Caption)
		}
		for _, p := range trees {
			Eventually(func() v1alpha1.PostPhase { return read(ctx, p).Status.Phase }).Should(Equal(v1alpha1.PhasePosted), p.Name)
			sum.judgeTree(ctx, tm, p)
		}
		sum.judge(ctx, tm, posts)
		fmt.Println("crash matrix:", sum.String())
		// The sandbox refuses the same words twice, as X does, so that a second
		// call would not show as a second post: the calls are counted too.
		Expect(publishCalls(ctx)-callsBefore).To(BeNumerically("<=", sum.attempts), "calls that could publish, for as many recorded attempts")
		Expect(sum.twice).To(BeZero(), "published twice")
		Expect(sum.lost).To(BeZero(), "lost")
		Expect(sum.givenUp).To(BeZero(), "given up")
		Expect(settledByLooking()).NotTo(BeZero(), "no doubt was settled by looking: the kills came at no interesting moment")
	})

	AfterAll(func() { m.kill() })
})

// sendWindow is how long after its claim a manager may begin a call, by default.
const sendWindow = 5 * time.Second

// onto spreads posts over the platforms: each to one, every fourth to all.
func onto(i int) []v1alpha1.Platform {
	if i%4 == 3 {
		return publishers
	}
	return publishers[i%4:][:1]
}

func publishCalls(ctx context.Context) int {
	n := 0
	for _, name := range publishers {
		calls, err := platform.Calls(ctx, string(name))
		Expect(err).NotTo(HaveOccurred())
		n += calls["publish"]
	}
	return n
}

// wait lets time pass: the real one, since real processes live in it.
func wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// revive starts another manager if this one has ended itself, as it does when
// it cannot renew its lease.
func revive(m *process) *process {
	select {
	case <-m.done:
		return startManager()
	default:
		return m
	}
}
