// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/logtest"
	"github.com/herald-social/herald/test/suite"
)

// observed is a reconciler with its events and its log at level info.
type observed struct {
	*connection.Reconciler
	events *events.FakeRecorder
	log    logtest.Log
}

func newObserved(now *clocktesting.FakeClock, served platforms.Registry, owned func(context.Context, string) (bool, error)) *observed {
	GinkgoHelper()
	t := &observed{events: events.NewFakeRecorder(20)}
	t.Reconciler = suite.Must(connection.New(connection.Options{
		Client: k8s, APIReader: k8s, Clock: now, Events: t.events, Owned: owned, Platforms: served,
		Store: credentials.NewStore(k8s, k8s, now, "observed", apps),
	}))
	return t
}

// pass reconciles an account's connection once, and returns the requeue delay.
func (t *observed) pass(ctx context.Context, a *account) time.Duration {
	GinkgoHelper()
	result := suite.Must(t.Reconcile(ctrl.LoggerInto(ctx, logr.FromSlogHandler(slog.NewJSONHandler(&t.log, nil))), a.request()))
	a.read(ctx)
	return result.RequeueAfter
}

// event returns the next event, or "" if there is none.
func (t *observed) event() string {
	select {
	case e := <-t.events.Events:
		return e
	default:
		return ""
	}
}

var _ = Describe("A blocked account", func() {
	served := func() platforms.Registry { return platforms.Registry{v1alpha1.PlatformX: platform} }

	It("reports immediately that the platform does not accept calls, and that it does again, with one event and one log line for each change", func(ctx SpecContext) {
		now := clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
		t, a := newObserved(now, served(), envtest.EveryNamespace), newAccount(ctx, byHand, nil).create(ctx)
		t.pass(ctx, a)
		Expect(t.event()).To(HavePrefix("Normal Connected"))

		By("recording a limit in the connection")
		a.conn.Status.RateLimitedUntil, a.conn.Status.RateLimitedMessage = v1alpha1.NewTimePtr(now.Now().Add(10*time.Minute)), "too many posts"
		Expect(k8s.Status().Update(ctx, a.conn)).To(Succeed())
		Expect(t.pass(ctx, a)).To(BeNumerically("~", 10*time.Minute, time.Second), "the end of the limit is the next look")
		Expect(a.condition(ctx, v1alpha1.ConditionRateLimited)).To(HavePrefix("AccountLimited: nothing is sent before "))
		Expect(a.state(ctx)()).To(HavePrefix("True Connected"), "the account itself is ready")
		Expect(t.event()).To(And(HavePrefix("Warning RateLimited AccountLimited: nothing is sent before"), HaveSuffix(": too many posts")))
		t.pass(ctx, a)
		Expect(t.event()).To(BeEmpty(), "the event was emitted")

		By("extending it")
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(a.conn), a.conn)).To(Succeed())
		later := v1alpha1.NewTime(now.Now().Add(20 * time.Minute))
		a.conn.Status.RateLimitedUntil = &later
		Expect(k8s.Status().Update(ctx, a.conn)).To(Succeed())
		t.pass(ctx, a)
		Expect(a.condition(ctx, v1alpha1.ConditionRateLimited)).To(HavePrefix("AccountLimited: nothing is sent before " + later.String()))
		Expect(t.event()).To(BeEmpty(), "the limit is the same")

		By("letting it expire")
		now.Step(20 * time.Minute)
		t.pass(ctx, a)
		Expect(a.condition(ctx, v1alpha1.ConditionRateLimited)).To(BeEmpty())
		Expect(t.event()).To(HavePrefix("Normal RateLimitEnded"))
		lines := t.log.With("the limit of an account has changed")
		Expect(lines).To(HaveExactElements(
			And(HaveKeyWithValue("limited", true), HaveKeyWithValue("reason", "AccountLimited")), HaveKeyWithValue("limited", false),
		))
	})

	It("reports at the manager's start that the platform was disabled or enabled, without calling it", func(ctx SpecContext) {
		now := clocktesting.NewFakeClock(time.Now())
		a := newAccount(ctx, byHand, nil).create(ctx)
		newObserved(now, served(), envtest.EveryNamespace).pass(ctx, a)
		Expect(a.state(ctx)()).To(Equal("True Connected"))
		asked := calls(ctx, "identity")

		off := newObserved(now, platforms.Registry{}, envtest.EveryNamespace)
		Expect(off.pass(ctx, a)).To(BeZero(), "only another start changes that")
		Expect(a.state(ctx)()).To(Equal("False PlatformNotSupported"))
		Expect(off.event()).To(HavePrefix("Warning PlatformNotSupported"))
		Expect(off.log.With("not ready")).To(HaveExactElements(HaveKeyWithValue("reason", "PlatformNotSupported")))
		off.pass(ctx, a)
		Expect(off.event()).To(BeEmpty())
		Expect(calls(ctx, "identity")).To(Equal(asked))

		on := newObserved(now, served(), envtest.EveryNamespace)
		on.pass(ctx, a)
		Expect(a.state(ctx)()).To(Equal("True Connected"))
		Expect(on.log.With("ready")).To(HaveExactElements(HaveKeyWithValue("reason", "Connected")), "a user waits for the result")
	})

	It("emits a warning about a missing Team only after there was time to create one", func(ctx SpecContext) {
		a := newAccount(ctx, byHand, nil).create(ctx)
		now := clocktesting.NewFakeClock(a.read(ctx).CreationTimestamp.Add(time.Second))
		nobody := func(context.Context, string) (bool, error) { return false, nil }
		t := newObserved(now, served(), nobody)
		Expect(t.pass(ctx, a)).To(Equal(29 * time.Second))
		Expect(a.state(ctx)()).To(Equal("False NoTeam"), "the status is written immediately")
		Expect(t.event()).To(BeEmpty())
		now.Step(29 * time.Second)
		t.pass(ctx, a)
		Expect(t.event()).To(HavePrefix("Warning NoTeam"))
		t.pass(ctx, a)
		Expect(t.event()).To(BeEmpty(), "the event was emitted")
		Expect(t.log.With("not ready")).To(HaveLen(1))
	})
})
