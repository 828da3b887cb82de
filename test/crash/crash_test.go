// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

// protocol lists the failpoints of every delivery, in order; preparing lists the failpoints of a preparation.
var (
	protocol  = []string{post.PointBeforeClaim, post.PointAfterClaim, post.PointAfterAnswer, post.PointAfterRecord}
	preparing = []string{post.PointAfterPart, post.PointAfterSecret, post.PointAfterPrepare}
)

// report prints totals under a name and checks the invariants: nothing is published twice or lost, and few posts fail,
// with a useful reason.
func report(name string, sum *totals) {
	GinkgoHelper()
	fmt.Printf("%s: %s\n", name, sum)
	all := sum.sum(everyPair)
	Expect(all.twice).To(BeZero(), "published twice")
	Expect(all.lost).To(BeZero(), "lost")
	Expect(all.denied).To(BeZero(), "published but failed")
	Expect(sum.sum(idempotent).givenUp).To(BeZero(), "given up although a repeated call cannot publish twice")
	Expect(sum.unnamed).To(BeZero(), "given up without naming what to check")
	Expect(all.looked).NotTo(BeZero(), "no lookup settled an outcome: the kills came at the wrong moments")
}

// idempotent reports whether the platform stores one post per key that Herald chooses. If so, one lookup always settles
// a lost response.
func idempotent(p pair) bool { return registry[p.to].Capabilities().Idempotent }

// expectCalls expects that every publishing call is recorded. Like X, the sandbox rejects duplicate text, so a second
// call would not show up as a second post.
func expectCalls(ctx SpecContext, before map[v1alpha1.Platform]int, sum *totals) {
	GinkgoHelper()
	for _, on := range connected() {
		attempts := sum.sum(func(p pair) bool { return p.to == on }).attempts
		Expect(publishCalls(ctx, on)-before[on]).To(BeNumerically("<=", attempts), "calls that could publish to %s, for as many recorded attempts", on)
	}
}

func publishCalls(ctx SpecContext, on v1alpha1.Platform) int { return calls(ctx, on, "publish") }

func calls(ctx SpecContext, on v1alpha1.Platform, operations ...string) (n int) {
	counts, err := platform.Calls(ctx, string(on))
	Expect(err).NotTo(HaveOccurred())
	for _, operation := range operations {
		n += counts[operation]
	}
	return n
}

func publishCallsEverywhere(ctx SpecContext) map[v1alpha1.Platform]int {
	out := map[v1alpha1.Platform]int{}
	for _, on := range connected() {
		out[on] = publishCalls(ctx, on)
	}
	return out
}

var _ = Describe("The crash matrix", Ordered, func() {
	sum := newTotals()
	var m *process
	var tm *team
	var before map[v1alpha1.Platform]int

	BeforeAll(func(ctx SpecContext) {
		before = publishCallsEverywhere(ctx)
		m = startManager()
		tm = newTeam(ctx)
	})

	kill := func() { m.kill() }

	// meet waits until the failure has happened, or until all posts are finished without reaching the point.
	meet := func(ctx SpecContext, met <-chan struct{}, posts ...*sent) (came bool) {
		GinkgoHelper()
		Eventually(func() bool {
			select {
			case <-met:
				return true
			default:
				return !slices.ContainsFunc(posts, func(p *sent) bool { return !over(ctx, p) })
			}
		}).Should(BeTrue(), func() string { return standing(ctx, posts) })
		if points.cancel() {
			return false
		}
		<-met
		return true
	}
	// killed creates posts and kills the manager when one of them reaches a point.
	killed := func(ctx SpecContext, point string, of ...pair) {
		GinkgoHelper()
		met := points.once(point, kill)
		var made []*sent
		for _, p := range of {
			made = append(made, tm.post(ctx, p.kind, "killed "+point, p.to))
		}
		if meet(ctx, met, made...) {
			sum.kills++
			m = startManager()
		}
	}

	It("kills the manager at each point of each kind of post on each platform", func(ctx SpecContext) {
		if long {
			for _, p := range public() {
				for _, point := range protocol {
					killed(ctx, point, p)
				}
				for _, point := range preparing {
					if p.prepares(p.to) {
						killed(ctx, point, p)
					}
				}
			}
			return
		}
		all := slices.Concat(protocol, preparing)
		for i, point := range all {
			var some []pair
			for k, p := range public() {
				if k%len(all) == i || slices.Contains(preparing, point) && p.kind == aLongFilm {
					some = append(some, p)
				}
			}
			killed(ctx, point, some...)
		}
	})

	It("kills the manager at each point of a post to all platforms", func(ctx SpecContext) {
		for _, k := range []*kind{aText, aPicture, aFilm} {
			for _, point := range protocol {
				if k != aText && !long && point != post.PointAfterAnswer {
					continue
				}
				met := points.once(point, kill)
				if meet(ctx, met, tm.post(ctx, k, "everywhere, killed "+point, k.targets()...)) {
					sum.kills++
					m = startManager()
				}
			}
		}
	})

	It("kills the manager at points of an inbox draft", func(ctx SpecContext) {
		at := []string{post.PointAfterSecret, post.PointAfterClaim, post.PointAfterAnswer, post.PointAfterRecord}
		if !long {
			at = at[2:3]
		}
		for _, to := range aDraft.targets() {
			for _, point := range at[:min(len(at), draftsAtMost)] {
				killed(ctx, point, pair{aDraft, to})
			}
		}
	})

	It("kills the manager at each point of the second card of a tree", func(ctx SpecContext) {
		for _, k := range []*kind{aTree, aFullTree} {
			for _, to := range k.targets() {
				for _, point := range protocol {
					if !long && (k == aTree) != (point == post.PointAfterAnswer) {
						continue
					}
					dead := make(chan struct{})
					points.once(post.PointAfterRecord, func() {
						met := points.once(point, kill)
						go func() {
							<-met
							close(dead)
						}()
					})
					if meet(ctx, dead, tm.post(ctx, k, "second card, killed "+point, to)) {
						sum.kills++
						m = startManager()
					}
				}
			}
		}
	})

	It("kills the manager between two posts with the same text", func(ctx SpecContext) {
		// X and Facebook reject duplicate text. Threads publishes both posts, and so does Bluesky, under different
		// keys.
		for _, to := range []v1alpha1.Platform{v1alpha1.PlatformThreads, v1alpha1.PlatformBluesky} {
			for _, point := range protocol {
				if !long && to != v1alpha1.PlatformThreads && point != post.PointAfterAnswer {
					continue
				}
				text := "the same words, killed " + point
				tm.say(ctx, aText, text, time.Time{}, to)
				met := points.once(point, kill)
				tm.say(ctx, aText, text, time.Time{}, to)
				Eventually(met).Should(BeClosed(), point)
				sum.kills++
				m = startManager()
			}
		}
	})

	It("kills the manager after an early preparation", func(ctx SpecContext) {
		for _, k := range []*kind{aText, aPicture, aLongFilm} {
			for _, to := range k.targets() {
				if !k.prepares(to) || !long && k != aLongFilm {
					continue
				}
				met := points.once(post.PointAfterAhead, kill)
				p := tm.say(ctx, k, fmt.Sprintf("ahead %d", serial.Add(1)), time.Now().Add(6*time.Second), to)
				if meet(ctx, met, p) {
					sum.kills++
					m = startManager()
				}
			}
		}
	})

	It("kills the manager in the middle of an upload, and between the files of a carousel", func(ctx SpecContext) {
		for _, k := range []*kind{aCarousel, aLongFilm} {
			for _, to := range k.targets() {
				if !k.prepares(to) {
					continue
				}
				for n := 1; n <= 2; n++ {
					for _, operation := range []string{"upload", "create"} {
						Expect(platform.Fault(ctx, sandboxtest.Fault{
							Platform: string(to), Account: tm.accounts[to].ID, Operation: operation, Kind: "delay", DelayMS: 400, Times: 3,
						})).To(Succeed())
					}
					had := calls(ctx, to, "upload", "create")
					p := tm.post(ctx, k, fmt.Sprintf("killed after %d calls", n), to)
					Eventually(func() bool { return calls(ctx, to, "upload", "create") >= had+n || over(ctx, p) }).Should(BeTrue())
					m.kill()
					sum.kills++
					Expect(platform.ClearFaults(ctx)).To(Succeed())
					m = startManager()
					if !long {
						break
					}
				}
			}
		}
	})

	It("kills the manager between a lookup and its record", func(ctx SpecContext) {
		for _, p := range public() {
			if !long && p.kind != aText && p.kind != aFilm {
				continue
			}
			Expect(platform.Fault(ctx, sandboxtest.Fault{
				Platform: string(p.to), Account: tm.accounts[p.to].ID, Operation: "publish", Kind: "drop_after", Times: 1,
			})).To(Succeed())
			made := tm.post(ctx, p.kind, "killed after a look", p.to)
			if !long && p.to != v1alpha1.PlatformX && p.to != v1alpha1.PlatformTikTok {
				continue // a lookup decides it while other managers are killed
			}
			if meet(ctx, points.once(post.PointAfterLookup, kill), made) {
				sum.kills++
				m = startManager()
			}
		}
	})

	It("kills the manager around a refusal of a published post", func(ctx SpecContext) {
		at := aroundARefusal
		for i, p := range public() {
			if !long {
				at = aroundARefusal[i%len(aroundARefusal):][:1]
			}
			for _, point := range at {
				lie := sandboxtest.Fault{
					Platform: string(p.to), Account: tm.accounts[p.to].ID, Operation: "publish", Kind: "publishes_and_refuses", Refusal: "invalid", Times: 1,
				}
				if p.to == v1alpha1.PlatformX {
					// On other platforms, rate limits last longer than the specs wait.
					lie.Refusal, lie.RetryAfterS = "rate_limit", 2
				}
				Expect(platform.Fault(ctx, lie)).To(Succeed())
				sum.lies++
				killed(ctx, point, p)
			}
		}
	})

	It("kills the manager in the middle of a call", func(ctx SpecContext) {
		for _, p := range public() {
			if !long && p.kind != aText && p.kind != aPicture {
				continue
			}
			Expect(platform.Fault(ctx, sandboxtest.Fault{
				Platform: string(p.to), Account: tm.accounts[p.to].ID, Operation: "publish", Kind: "delay", DelayMS: 1500, Times: 1,
			})).To(Succeed())
			had := publishCalls(ctx, p.to)
			made := tm.post(ctx, p.kind, "killed during the call", p.to)
			Eventually(func() bool { return publishCalls(ctx, p.to) > had || over(ctx, made) }).Should(BeTrue())
			m.kill()
			sum.kills++
			m = startManager()
		}
	})

	It("kills the API server and etcd at each point", func(ctx SpecContext) {
		at := []string{post.PointAfterAnswer}
		if long {
			at = slices.Concat(protocol, preparing)
		}
		for _, point := range at {
			for _, s := range []*server{apiServer, etcd} {
				if !long && s == etcd {
					continue
				}
				killed, settled := make(chan struct{}), make(chan struct{})
				met := points.once(point, func() {
					s.kill()
					close(killed)
				})
				var back sync.WaitGroup
				back.Go(func() {
					defer GinkgoRecover()
					select {
					case <-killed: // perhaps before the post exists, which then waits for it
						s.again(ctx)
					case <-settled:
					}
				})
				made := tm.post(ctx, aFilm, "killed the "+s.name+" "+point, aFilm.targets()...)
				if meet(ctx, met, made) {
					sum.serverKills++
				} else {
					close(settled)
				}
				back.Wait()
			}
		}
	})

	cuts := func(ctx SpecContext, point string, link *proxy, way cut, hold time.Duration, of pair) {
		met := points.once(point, func() { link.set(way) })
		if meet(ctx, met, tm.post(ctx, of.kind, fmt.Sprintf("cut off at %s for %s", point, hold), of.to)) {
			wait(hold)
			link.set(open)
			sum.cuts++
		}
	}

	It("cuts each of the manager's links in either direction at each point", func(ctx SpecContext) {
		n, hold := 0, time.Second
		if long {
			hold = 3 * time.Second
		}
		for _, link := range []*proxy{toKubernetes, toPlatform, toStore} {
			for _, way := range []cut{requestsLost, answersLost} {
				at := protocol
				if link == toStore {
					at = preparing[:1]
				}
				for _, point := range at {
					var onto []pair
					for _, p := range public() {
						if link != toStore && (long || p.kind == aText) || p.kind == aLongFilm {
							onto = append(onto, p)
						}
					}
					if !long {
						onto = onto[n%len(onto):][:1]
					}
					n++
					for _, p := range onto {
						cuts(ctx, point, link, way, hold, p)
					}
				}
			}
		}
		if long {
			// The outage is longer than the lease, so the manager exits and another one starts.
			for _, way := range []cut{requestsLost, answersLost} {
				for _, point := range protocol {
					cuts(ctx, point, toKubernetes, way, 14*time.Second, public()[0])
				}
			}
		}
	})

	It("pauses one of two managers at each point until its send window is over", func(ctx SpecContext) {
		at, of := protocol, public()
		if !long {
			at, of = []string{post.PointAfterClaim}, of[:1]
		}
		m.kill()
		twins := []*process{startManager(alone), startManager(alone)}
		for _, point := range at {
			met := points.once(point, func() { wait(sendWindow + 3*time.Second) })
			var made []*sent
			for _, p := range of {
				made = append(made, tm.post(ctx, p.kind, "held "+point, p.to))
			}
			if meet(ctx, met, made...) {
				sum.holds++
			}
		}
		twins[0].kill()
		twins[1].kill()
		m = startManager()
	})

	It("ends with each post published exactly once", func(ctx SpecContext) {
		settle(ctx, tm)
		sum.verifyTeam(ctx, tm)
		report("crash matrix", sum)
		expectCalls(ctx, before, sum)
	})

	AfterAll(func() { m.kill() })
})

// sendWindow is the default time after a claim within which its call must start.
const sendWindow = 5 * time.Second

// patience is the timeout for finishing the remaining posts. In a long run, a platform with an injected rate limit
// blocks an app for minutes, and repeated failures back off for longer and longer. Otherwise, it covers the time until
// a lookup proves an absence. On a busy machine some lookups fail, and back off for minutes.
func patience() time.Duration {
	if long {
		return 20 * time.Minute
	}
	return 8 * time.Minute
}

// settle waits until all of the teams' posts are settled.
func settle(ctx SpecContext, teams ...*team) {
	GinkgoHelper()
	Expect(platform.ClearFaults(ctx)).To(Succeed())
	for _, tm := range teams {
		Eventually(tm.unsettled).WithContext(ctx).WithTimeout(patience()).WithPolling(time.Second).Should(BeEmpty(), "posts of %s that wait", tm.namespace)
	}
}

// wait sleeps on the real clock, because the processes are real.
func wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}
