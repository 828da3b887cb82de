// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

// twins holds two posts of one account with equal texts.
type twins struct {
	team
	a, b *v1alpha1.Post
}

var _ = Describe("An unknown outcome", Ordered, func() {
	var (
		m     *manager
		twice team
		both  *v1alpha1.Post
	)
	BeforeAll(func(ctx SpecContext) {
		m = startManager(func(o *post.Options) { o.StartingDeadline = 8 * time.Second })
		twice = newTeam(ctx)
		both = twice.post(ctx, "same words twice", func(p *v1alpha1.Post) { p.Spec.Targets = append(p.Spec.Targets, p.Spec.Targets[0]) })
	})
	AfterAll(func() { m.stop() })

	It("never gives one publication to two posts that are looked for at once", func(ctx SpecContext) {
		settled := Or(Equal(v1alpha1.PhasePosted), Equal(v1alpha1.PhaseFailed))
		var pairs []twins
		for range 3 {
			t := newTeam(ctx)
			t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
			words := fmt.Sprintf("resent %d", serial.Add(1))
			pairs = append(pairs, twins{t, t.post(ctx, words), t.post(ctx, words)})
		}
		for _, pair := range pairs {
			Eventually(phase(ctx, pair.a)).Should(settled)
			Eventually(phase(ctx, pair.b)).Should(settled)
			idA, idB := read(ctx, pair.a).Status.Targets[0].ExternalID, read(ctx, pair.b).Status.Targets[0].ExternalID
			Expect(idA + idB).NotTo(BeEmpty())
			Expect(idA).NotTo(Equal(idB))
			Expect(pair.team.published(ctx)).To(HaveLen(1))
		}
	})

	It("never gives one publication to two targets", func(ctx SpecContext) {
		Eventually(phase(ctx, both)).Should(Equal(v1alpha1.PhaseFailed))
		now := read(ctx, both)
		ids := map[string]int{}
		for _, target := range now.Status.Targets {
			if target.ExternalID != "" {
				ids[target.ExternalID]++
			}
		}
		Expect(ids).To(HaveLen(1))
		Expect(ids).To(HaveEach(1))
		Expect(twice.published(ctx)).To(HaveLen(1))
	})

	It("does not send what was to be tried again until a time that has passed", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 4})
		p := t.post(ctx, "too late")
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonRateLimited))
		Eventually(func() error {
			now := read(ctx, p)
			now.Status.Targets[0].TryUntil = v1alpha1.NewTimePtr(time.Now().Add(-time.Hour))
			return k8s.Status().Update(ctx, now)
		}).Should(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		target := read(ctx, p).Status.Targets[0]
		Expect(target.Reason).To(Equal(v1alpha1.ReasonRateLimited), "the platform's reason is kept")
		Expect(target.Message).To(ContainSubstring("X limits how often this account may be used"))
		Expect(target.Message).To(ContainSubstring("post again"))
		Expect(target.Message).NotTo(ContainSubstring("Herald tries again"), "it does not, any more")
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("asks a person about a call in doubt when it is too late for another one", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "rate_limit", RetryAfterS: 4})
		p := t.post(ctx, "in doubt and too late")
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonRateLimited))
		since := v1alpha1.NewTime(time.Now().Add(-2 * time.Hour))
		Eventually(func() error {
			now := read(ctx, p)
			now.Status.Targets[0].TryUntil = v1alpha1.NewTimePtr(time.Now().Add(-time.Hour))
			now.Status.Targets[0].Attempt.UnknownSince = &since
			return k8s.Status().Update(ctx, now)
		}).Should(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		target := read(ctx, p).Status.Targets[0]
		Expect(target.Reason).To(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(target.Message).To(And(ContainSubstring("it is unknown whether"), ContainSubstring("X limits how often this account may be used")), "it tells both")
		Expect(target.Message).NotTo(ContainSubstring("post again"), "that might publish it twice")
		Expect(question(ctx, p)()).To(ContainSubstring("sent after "+since.String()), "the call in doubt is the first one")
		Expect(read(ctx, p).Status.Finished).To(BeFalse(), "it waits for an answer")
		settle(ctx, p, "0=not-sent")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"in doubt and too late"}))
	})

	It("accepts a restored post whose time is still to come", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "restored in time", at(6*time.Second), func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: time.Now().Add(-24 * time.Hour).Format(time.RFC3339)}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
	})
})

var _ = Describe("The end of the starting deadline", Ordered, func() {
	var (
		m               *manager
		lonely          team
		nobody          *v1alpha1.Post
		called, instead team
		moved           *v1alpha1.Post
		silent          team
		again           *v1alpha1.Post
	)
	// moveAway makes a call that gets no response, and then gives the connection's name to another account.
	moveAway := func(ctx SpecContext) {
		called = newTeam(ctx)
		called.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		called.fault(ctx, sandboxtest.Fault{Operation: "list", Kind: "status", Status: 503, Times: 50})
		moved = called.post(ctx, "moved away")
		Eventually(func() []string { return called.published(ctx) }).Should(HaveLen(1))

		key := client.ObjectKey{Namespace: called.namespace, Name: "x"}
		Expect(k8s.Delete(ctx, &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}})).To(Succeed())
		Expect(k8s.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}})).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(k8s.Get(ctx, key, &v1alpha1.Connection{})) }).Should(BeTrue())
		instead = team{namespace: called.namespace, account: called.connect(ctx, "x")}
	}
	BeforeAll(func(ctx SpecContext) {
		m = startManager(func(o *post.Options) { o.StartingDeadline = 5 * time.Second })
		// Their deadlines pass while the first spec waits for its own.
		moveAway(ctx)
		lonely = newTeam(ctx)
		nobody = lonely.post(ctx, "nobody", func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "never" })
		silent = newTeam(ctx)
		silent.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "drop_after"})
		silent.fault(ctx, sandboxtest.Fault{Operation: "list", Kind: "status", Status: 503, Times: 50})
		again = silent.post(ctx, "again, please", func(p *v1alpha1.Post) { p.Spec.OnUnknownOutcome = v1alpha1.OnUnknownRetry })
	})
	AfterAll(func() { m.stop() })

	It("starts anew when a post that waited is scheduled for another time", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.setReady(ctx, "x", metav1.ConditionFalse, v1alpha1.ReasonRevoked, t.account.Username)
		p := t.post(ctx, "postponed", at(time.Second))
		Eventually(func() *v1alpha1.Time {
			targets := read(ctx, p).Status.Targets
			if len(targets) == 0 || targets[0].Reason != v1alpha1.ReasonConnectionNotReady {
				return nil
			}
			return targets[0].TryUntil
		}).ShouldNot(BeNil())
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(7 * time.Second)) })
		Eventually(func() *v1alpha1.Time { return read(ctx, p).Status.Targets[0].TryUntil }).Should(BeNil())
		t.setReady(ctx, "x", metav1.ConditionTrue, v1alpha1.ReasonConnected, t.account.Username)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
	})

	It("leaves doubt to the account that was called, and to no other", func(ctx SpecContext) {
		Eventually(func() string { return readyReason(ctx, moved) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(read(ctx, moved).Status.Targets[0].Message).To(ContainSubstring(called.account.ID), "it says where to look")
		Expect(instead.published(ctx)).To(BeEmpty())
		settle(ctx, moved, "0=posted:42")
		Eventually(phase(ctx, moved)).Should(Equal(v1alpha1.PhasePosted))
		Expect(instead.published(ctx)).To(BeEmpty())
	})

	It("asks a person about what was to be sent again in doubt, and is not any more", func(ctx SpecContext) {
		Eventually(func() string { return readyReason(ctx, again) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(commands(question(ctx, again)())).To(HaveLen(2))
		Expect(read(ctx, again).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(1))
		settle(ctx, again, "0=posted:42")
		Eventually(phase(ctx, again)).Should(Equal(v1alpha1.PhasePosted))
		Expect(silent.published(ctx)).To(HaveLen(1))
	})

	It("fails a post whose connection never comes into being", func(ctx SpecContext) {
		Eventually(func() bool { return read(ctx, nobody).Status.Finished }).Should(BeTrue())
		Expect(readyReason(ctx, nobody)).To(Equal(v1alpha1.ReasonMissedSchedule))
		lonely.connect(ctx, "never")
		Consistently(phase(ctx, nobody), time.Second).Should(Equal(v1alpha1.PhaseFailed))
	})
})
