// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
)

// locking is X that has locked one account, and checks it again after a few seconds.
type locking struct {
	fast

	account *atomic.Value
	calls   *atomic.Int32
}

func (l locking) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	if job.Account.ID != l.account.Load() {
		return l.fast.Publish(ctx, job)
	}
	l.calls.Add(1)
	return platforms.Result{Outcome: platforms.Refused, Err: &platforms.Error{
		Class: platforms.ClassRestricted, Subject: platforms.SubjectAccount, Code: "326",
		Problem: "X has locked this account for now", Remedy: "sign in at x.com", RetryAt: time.Now().Add(4 * time.Second),
	}}
}

var _ = Describe("An account that its platform has locked", func() {
	const words = "X has locked this account for now; sign in at x.com"

	It("is reported by its Connection, holds its own posts alone, and goes on when it is unlocked", func(ctx SpecContext) {
		t, other := newTeam(ctx), newTeam(ctx)
		var locked atomic.Value
		var calls atomic.Int32
		locked.Store(t.account.ID)
		runManager(func(o *post.Options) {
			inner, ok := o.Platforms[v1alpha1.PlatformX].(fast)
			Expect(ok).To(BeTrue())
			o.Platforms = platforms.Registry{v1alpha1.PlatformX: locking{inner, &locked, &calls}}
		})

		first := t.post(ctx, "the first one")
		Eventually(t.condition(ctx, v1alpha1.ConditionPublishingRefused)).Should(Equal("AccountRestricted: " + words))
		Eventually(func() string { return readyReason(ctx, first) }).Should(Equal(v1alpha1.ReasonAccountRestricted))
		Expect(read(ctx, first).Status.Targets[0].Message).To(HavePrefix(words))
		conn := t.connection(ctx)
		Expect(conn.Status.RateLimitedUntil).NotTo(BeNil(), "it says until when nothing is sent")
		Expect(conn.Status.AppRateLimitedUntil).To(BeNil(), "other accounts of the app are not held")
		Eventually(func() []string { return t.events(ctx, conn) }).Should(ContainElement(
			And(HavePrefix("AccountRestricted: nothing is sent before "), HaveSuffix(words))))

		second, foreign := t.post(ctx, "the second one"), other.post(ctx, "of another account")
		Eventually(phase(ctx, foreign)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(func() string { return readyReason(ctx, second) }).Should(Equal(v1alpha1.ReasonAccountRestricted))
		Expect(read(ctx, second).Status.Targets[0].Message).To(And(ContainSubstring(`connection "x"`), ContainSubstring(words)))
		Expect(read(ctx, second).Status.Targets[0].Attempt).To(BeNil(), "nothing was sent for it")

		locked.Store("")
		Eventually(phase(ctx, first), 20*time.Second).Should(Equal(v1alpha1.PhasePosted))
		Eventually(phase(ctx, second), 20*time.Second).Should(Equal(v1alpha1.PhasePosted))
		Eventually(t.condition(ctx, v1alpha1.ConditionPublishingRefused)).Should(BeEmpty())
		Expect(calls.Load()).To(BeNumerically("<=", 2), "a locked account is not called again and again")
	})

	It("is told apart from a code that Herald does not know, which is counted", func(ctx SpecContext) {
		t := newTeam(ctx)
		registry := prometheus.NewRegistry()
		runManager(func(o *post.Options) {
			inner, ok := o.Platforms[v1alpha1.PlatformX].(fast)
			Expect(ok).To(BeTrue())
			o.Platforms = platforms.Registry{v1alpha1.PlatformX: odd{inner}}
			o.Unlisted = unlisted.New(registry)
		})
		p := t.post(ctx, "with an odd answer")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Message).To(ContainSubstring("the error 999"))
		Expect(t.condition(ctx, v1alpha1.ConditionPublishingRefused)()).To(BeEmpty(), "it says nothing about the account")
		Eventually(func() ([]*dto.MetricFamily, error) { return registry.Gather() }).Should(ContainElement(HaveField("Metric", ContainElement(And(
			HaveField("Label", ContainElement(And(HaveField("Name", HaveValue(Equal("code"))), HaveField("Value", HaveValue(Equal("999")))))),
			HaveField("Label", ContainElement(And(HaveField("Name", HaveValue(Equal("operation"))), HaveField("Value", HaveValue(Equal(unlisted.Publish)))))),
			HaveField("Counter.Value", HaveValue(BeNumerically(">=", 1))),
		)))))
	})
})

// odd is X that refuses each post with a code that is missing from the error table.
type odd struct{ fast }

func (odd) Publish(context.Context, platforms.Job) platforms.Result {
	return platforms.Result{Outcome: platforms.Refused, Err: &platforms.Error{
		Class: platforms.ClassPermanent, Problem: "X refused the request with the error 999", Code: "999", Unlisted: true,
	}}
}
