// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
	"github.com/herald-social/herald/test/sandboxtest"
)

// changed is a variant of X with modified results.
type changed struct {
	fast

	change func(*platforms.Result)
}

func (c changed) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	result := c.fast.Publish(ctx, job)
	c.change(&result)
	return result
}

// appLimited returns the end of the app-wide rate limit in a team's connection.
func appLimited(ctx context.Context, t team) func() *v1alpha1.Time {
	return func() *v1alpha1.Time { return t.connection(ctx).Status.AppRateLimitedUntil }
}

// liftLimits removes the limits from a team's connection, as a user does.
func liftLimits(ctx context.Context, t team) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var conn v1alpha1.Connection
		if err := k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "x"}, &conn); err != nil {
			return err
		}
		conn.Status.RateLimitedUntil, conn.Status.AppRateLimitedUntil = nil, nil
		return k8s.Status().Update(ctx, &conn)
	})).To(Succeed())
}

func (changed) Inspect(context.Context, platforms.Account) (platforms.AccountInfo, error) {
	return platforms.AccountInfo{}, nil
}

// answering makes X return modified results.
func answering(change func(*platforms.Result)) func(*post.Options) {
	return func(o *post.Options) {
		x, ok := o.Platforms[v1alpha1.PlatformX].(fast)
		Expect(ok).To(BeTrue())
		o.Platforms = platforms.Registry{v1alpha1.PlatformX: changed{x, change}}
	}
}

var _ = Describe("The order of posts", func() {
	It("delays the other posts of a rate-limited connection, also after a restart", func(ctx SpecContext) {
		t := newTeam(ctx)
		m := startManager()
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 4})
		first := t.post(ctx, "limited")
		Eventually(func() *v1alpha1.Time { return t.connection(ctx).Status.RateLimitedUntil }).ShouldNot(BeNil())
		conn := t.connection(ctx)
		m.stop()
		runManager()
		var others []*v1alpha1.Post
		for i := range 5 {
			others = append(others, t.post(ctx, fmt.Sprintf("waits %d", i)))
		}
		for _, p := range append(others, first) {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
			Expect(read(ctx, p).Status.Targets[0].PostedAt.Time).To(BeTemporally(">=", conn.Status.RateLimitedUntil.Time))
		}
		Expect(publishesBy(t.account)).To(Equal(7), "one call that was refused, then one for each post")
	})

	It("blocks a connection whose platform responds to a post that it was the last one for now", func(ctx SpecContext) {
		t := newTeam(ctx)
		m := startManager(answering(func(r *platforms.Result) {
			r.RateLimits = []platforms.RateLimit{{Name: platforms.PostsPerDay, Limit: 20, BlockedUntil: time.Now().Add(5 * time.Second)}}
		}))
		Eventually(phase(ctx, t.post(ctx, "the last one"))).Should(Equal(v1alpha1.PhasePosted))
		Eventually(func() []v1alpha1.RateLimit { return t.connection(ctx).Status.RateLimits }).Should(ConsistOf(
			And(HaveField("Name", "postsPerDay"), HaveField("Limit", BeEquivalentTo(20)), HaveField("Remaining", BeZero()))))
		conn := t.connection(ctx)
		Expect(conn.Status.RateLimitedMessage).To(ContainSubstring("postsPerDay"))
		Expect(conn.Status.AppRateLimitedUntil).To(BeNil())

		m.stop()
		runManager()
		next := posted(ctx, t.post(ctx, "waits until there is room"))
		Expect(read(ctx, next).Status.Targets[0].PostedAt.Time).To(BeTemporally(">=", conn.Status.RateLimitedUntil.Time), "both managers wait for the limit")
		Expect(publishesBy(t.account)).To(Equal(2))
	})

	It("delays the next card of a tree if a card was the last post for now", func(ctx SpecContext) {
		t := newTeam(ctx)
		until := time.Now().Add(3 * time.Second)
		// This also applies to posts that other specs have left behind.
		runManager(answering(func(r *platforms.Result) {
			if time.Now().Before(until) {
				r.RateLimits = []platforms.RateLimit{{Name: platforms.PostsPerWindow, Limit: 20, BlockedUntil: until}}
			}
		}))
		p := posted(ctx, t.post(ctx, "", cards("the last one", "the next one")))
		Expect(read(ctx, p).Status.Targets[0].Cards[1].PostedAt.Time).To(BeTemporally(">=", until))
	})

	It("is kept without writes while there is room", func(ctx SpecContext) {
		t := newTeam(ctx)
		runManager(answering(func(r *platforms.Result) {
			r.RateLimits = []platforms.RateLimit{{Name: platforms.PostsPerDay, Limit: 20, Remaining: 19}}
		}))
		for _, text := range []string{"one of many", "another of many"} {
			Eventually(phase(ctx, t.post(ctx, text))).Should(Equal(v1alpha1.PhasePosted))
		}
		conn := t.connection(ctx)
		Expect(conn.Status.RateLimits).To(BeEmpty())
	})

	It("blocks all accounts of an app that the platform limits, also after a restart", func(ctx SpecContext) {
		t, second, other := newTeam(ctx), newTeam(ctx), newTeam(ctx)
		for _, of := range []team{t, second, other} {
			of.byOAuth(ctx, "x")
		}
		var told atomic.Int32
		m := startManager(answering(func(r *platforms.Result) {
			if told.Add(1) <= 2 {
				r.RateLimits = []platforms.RateLimit{{Name: platforms.AppPostsPerDay, Limit: 10_000, AppWide: true, BlockedUntil: time.Now().Add(8 * time.Second)}}
			}
		}))
		Eventually(phase(ctx, t.post(ctx, "the app's last one"))).Should(Equal(v1alpha1.PhasePosted))
		Eventually(phase(ctx, second.post(ctx, "finds out whether it is the app's"))).Should(Equal(v1alpha1.PhasePosted))
		Eventually(appLimited(ctx, t)).ShouldNot(BeNil())
		conn := t.connection(ctx)
		here := other.post(ctx, "another team's, in the same process")
		Consistently(func() int { return publishesBy(other.account) }, time.Second).Should(BeZero())

		m.stop()
		runManager()
		there := other.post(ctx, "another team's, in the next process")
		for _, p := range []*v1alpha1.Post{here, there} {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
			Expect(read(ctx, p).Status.Targets[0].PostedAt.Time).To(BeTemporally(">=", conn.Status.AppRateLimitedUntil.Time))
		}
		Expect(publishesBy(other.account)).To(Equal(2))
	})

	It("does not call a platform on which the credits of Herald's own app are used up, although the limit has no end", func(ctx SpecContext) {
		t, second, other := newTeam(ctx), newTeam(ctx), newTeam(ctx)
		for _, of := range []team{t, second, other} {
			of.byOAuth(ctx, "x")
		}
		m := startManager()
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: http.StatusPaymentRequired})
		second.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: http.StatusPaymentRequired})
		begun := time.Now()
		t.post(ctx, "nobody pays for it")
		Eventually(appLimited(ctx, t)).ShouldNot(BeNil())
		conn := t.connection(ctx)
		Expect(conn.Status.AppRateLimitedUntil.Time).To(BeTemporally(">=", begun.Add(ratelimit.QuotaPause).Truncate(time.Millisecond)))
		Expect(conn.Status.RateLimitedMessage).To(ContainSubstring("credits"))

		By("one post of another account probes, with the same result")
		second.post(ctx, "nobody pays for this one")
		Eventually(appLimited(ctx, second)).ShouldNot(BeNil())
		Expect(publishesBy(second.account)).To(Equal(1))

		waiting := []*v1alpha1.Post{t.post(ctx, "waits"), other.post(ctx, "another team's waits")}
		for _, p := range waiting {
			Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonRateLimited))
		}
		Expect(publishesBy(t.account)).To(Equal(1))
		Expect(publishesBy(other.account)).To(BeZero())

		By("a team that uses its own app continues")
		apart := newTeam(ctx)
		Eventually(phase(ctx, apart.post(ctx, "another app's"))).Should(Equal(v1alpha1.PhasePosted))
		Expect(conn.Status.App).To(Equal(app), "the limit names its app")

		By("lifting the limit manually, without a restart")
		for _, of := range []team{t, second} {
			liftLimits(ctx, of)
		}
		defer m.stop()
		for _, p := range waiting {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
	})

	It("blocks only the account that reported an app limit, if another account's post succeeds", func(ctx SpecContext) {
		t, other := newTeam(ctx), newTeam(ctx)
		t.byOAuth(ctx, "x")
		other.byOAuth(ctx, "x")
		runManager()
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: http.StatusPaymentRequired})
		t.post(ctx, "nobody pays for it, X says")
		Eventually(appLimited(ctx, t)).ShouldNot(BeNil())
		for _, text := range []string{"goes through", "so does this one"} {
			Eventually(phase(ctx, other.post(ctx, text))).Should(Equal(v1alpha1.PhasePosted))
		}
		waits := t.post(ctx, "its own account waits")
		Eventually(func() string { return readyReason(ctx, waits) }).Should(Equal(v1alpha1.ReasonRateLimited))
		Expect(publishesBy(t.account)).To(Equal(1))
		liftLimits(ctx, t)
		Eventually(phase(ctx, waits)).Should(Equal(v1alpha1.PhasePosted))
	})

	It("delays a post for obstacles that affect similar posts only, and publishes the account's other posts", func(ctx SpecContext) {
		t := newTeam(ctx)
		var once sync.Once
		runManager(answering(func(r *platforms.Result) {
			once.Do(func() {
				*r = platforms.Result{Outcome: platforms.Refused, Err: &platforms.Error{
					Class: platforms.ClassQuota, Problem: "the inbox is full", PostOnly: true,
				}}
			})
		}))
		begun := time.Now()
		// The call must publish nothing, since the lookup that confirms the refusal would find the post.
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 1})
		draft := t.post(ctx, "a draft")
		Eventually(func() string { return readyReason(ctx, draft) }).Should(Equal(v1alpha1.ReasonRateLimited))
		pause := begun.Add(ratelimit.PostQuotaPause).Truncate(time.Millisecond)
		Eventually(func(g Gomega) {
			target := read(ctx, draft).Status.Targets[0]
			g.Expect(target.Attempt.Outcome).To(Equal(v1alpha1.OutcomeRefused))
			g.Expect(target.NextTryAt.Time).To(BeTemporally(">=", pause))
		}).Should(Succeed())
		Eventually(phase(ctx, t.post(ctx, "no draft"))).Should(Equal(v1alpha1.PhasePosted))
		conn := t.connection(ctx)
		Expect(conn.Status.RateLimitedUntil).To(BeNil())
	})

	It("reports why a post waits for its limited connection, with one write", func(ctx SpecContext) {
		t := newTeam(ctx)
		limit := func(until *v1alpha1.Time) {
			Eventually(func() error {
				var conn v1alpha1.Connection
				if err := k8s.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: "x"}, &conn); err != nil {
					return err
				}
				conn.Status.RateLimitedUntil = until
				return k8s.Status().Update(ctx, &conn)
			}).Should(Succeed())
		}
		limit(v1alpha1.NewTimePtr(time.Now().Add(time.Hour)))
		var writes writeCount
		writes.of(t.namespace)
		m := startDisturbed(interceptWrites(&writes))
		defer m.stop()
		p := t.post(ctx, "waits, and says so")
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonRateLimited))
		now := read(ctx, p)
		Expect(now.Status.Phase).To(Equal(v1alpha1.PhaseProcessing))
		Expect(now.Status.Targets[0].Message).To(ContainSubstring(`connection "x"`), "the message names the connection and the end of its wait")

		limit(v1alpha1.NewTimePtr(time.Now().Add(2 * time.Hour)))
		limit(nil)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(writes.n.Load()).To(BeEquivalentTo(3), "the wait, the claim, the record")
	})

	It("queries the remaining quota when the estimate is low", func(ctx SpecContext) {
		t := newTeam(ctx)
		runManager(answering(func(*platforms.Result) {}))
		conn := t.connection(ctx)
		conn.Status.RateLimits = []v1alpha1.RateLimit{{Name: "postsPerDay", Limit: 20, Remaining: 4, ObservedAt: v1alpha1.NewTime(time.Now())}}
		Expect(k8s.Status().Update(ctx, conn)).To(Succeed())
		probe := func() string { return t.connection(ctx).Annotations[v1alpha1.ProbeAnnotation] }
		Eventually(phase(ctx, t.post(ctx, "three are left"))).Should(Equal(v1alpha1.PhasePosted))
		Expect(probe()).To(BeEmpty())
		Eventually(phase(ctx, t.post(ctx, "two are left"))).Should(Equal(v1alpha1.PhasePosted))
		Eventually(probe).ShouldNot(BeEmpty())
	})

	It("queries the remaining quota when the platform reports none", func(ctx SpecContext) {
		t := newTeam(ctx)
		runManager(answering(func(r *platforms.Result) {
			*r = platforms.Result{Outcome: platforms.Refused, Err: &platforms.Error{
				Class: platforms.ClassQuota, Problem: "used up", RetryAt: time.Now().Add(10 * time.Minute),
			}}
		}))
		t.post(ctx, "one too many")
		Eventually(func() string { return t.connection(ctx).Annotations[v1alpha1.ProbeAnnotation] }).ShouldNot(BeEmpty())
		conn := t.connection(ctx)
		Expect(conn.Status.RateLimitedMessage).To(Equal("used up"), "the status contains the limit")
	})

	It("reserves slots for a team's single post while another team's calls are slow", func(ctx SpecContext) {
		greedy, small := newTeam(ctx), newTeam(ctx)
		var slow []*v1alpha1.Post
		runManager(func(o *post.Options) { o.MaxConcurrentReconciles = 4 })
		for i := range 8 {
			name := fmt.Sprintf("slow-%d", i)
			account := greedy.connect(ctx, name)
			team{account: account}.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 1500})
			slow = append(slow, greedy.post(ctx, name, at(2*time.Second), func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = name }))
		}
		single := posted(ctx, small.post(ctx, "single", at(2500*time.Millisecond)))
		late := read(ctx, single).Status.Targets[0].PostedAt.Sub(single.Spec.ScheduledAt.Time)
		for _, p := range slow {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		last := slow[0].Spec.ScheduledAt.Time
		for _, p := range slow {
			if at := read(ctx, p).Status.Targets[0].PostedAt; at.After(last) {
				last = at.Time
			}
		}
		Expect(single.Spec.ScheduledAt.Add(late)).To(BeTemporally("<", last), "the team did not wait for the other team's calls")
	})
})
