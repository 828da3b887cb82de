// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

var _ = Describe("A post that an earlier version worked on", func() {
	It("is never sent again where that version recorded an end, in phase and reason alone", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		p := t.post(ctx, "out", at(time.Hour), func(p *v1alpha1.Post) {
			for _, text := range []string{"refused", "in doubt", "waiting"} {
				target := p.Spec.Targets[0]
				target.Caption = text
				p.Spec.Targets = append(p.Spec.Targets, target)
			}
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		entry := func(index int32, outcome v1alpha1.AttemptOutcome, phase v1alpha1.PostPhase, reason, message string) v1alpha1.TargetStatus {
			at := v1alpha1.NewTime(time.Now().Add(-time.Minute))
			return v1alpha1.TargetStatus{
				Index: index, Platform: v1alpha1.PlatformX, Phase: phase, Reason: reason, Message: message,
				Attempt: &v1alpha1.Attempt{Number: 1, ID: "earlier", StartedAt: at, SendBefore: at, EndedAt: &at, Outcome: outcome, AccountID: t.account.ID},
			}
		}
		out := entry(0, v1alpha1.OutcomePosted, v1alpha1.PhasePosted, v1alpha1.ReasonPosted, "")
		waiting := entry(3, v1alpha1.OutcomeNotSent, v1alpha1.PhaseProcessing, v1alpha1.ReasonPlatformBusy, "nothing was sent; trying again")
		waiting.TryUntil = v1alpha1.NewTimePtr(time.Now().Add(time.Hour))
		Eventually(func() error {
			now := read(ctx, p)
			now.Status.Phase = v1alpha1.PhaseProcessing
			now.Status.Targets = []v1alpha1.TargetStatus{
				out,
				entry(1, v1alpha1.OutcomeRefused, v1alpha1.PhaseFailed, v1alpha1.ReasonRefused, "X does not want it"),
				entry(2, v1alpha1.OutcomeUnknown, v1alpha1.PhaseFailed, v1alpha1.ReasonOutcomeUnknown, "it is unknown whether the post was published"),
				waiting,
			}
			return k8s.Status().Update(ctx, now)
		}).Should(Succeed())

		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(t.published(ctx)).To(Equal([]string{"waiting"}), "that one was to be tried again")
		var states []v1alpha1.TargetState
		for _, target := range read(ctx, p).Status.Targets {
			states = append(states, target.State)
		}
		Expect(states).To(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetFailed, v1alpha1.TargetUndecided, v1alpha1.TargetPosted}))
		Expect(read(ctx, p).Status.Targets[1].Message).To(Equal("X does not want it"), "its words are kept")

		settle(ctx, p, "2=not-sent")
		Eventually(func() []string { return t.published(ctx) }).Should(ConsistOf("waiting", "in doubt"))
		Eventually(func() bool { return read(ctx, p).Status.Finished }).Should(BeTrue())
		Consistently(func() []string { return t.published(ctx) }).Should(HaveLen(2))
	})
})

var _ = Describe("A post that is larger than one may be", func() {
	// around makes a small post large: this is the maximum size of annotations in Kubernetes.
	around := func(p *v1alpha1.Post) {
		p.Annotations = map[string]string{"example.com/much": strings.Repeat("a", 262_000)}
		p.Labels = map[string]string{"example.com/long": strings.Repeat("a", 63), "example.com/longer": strings.Repeat("a", 63)}
	}

	It("is refused where the webhook did not, and stays so however often it is looked at", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		p := t.post(ctx, "large", around, at(3*time.Second))
		Eventually(conditionOf(ctx, p, v1alpha1.ConditionAccepted)).Should(And(HavePrefix(v1alpha1.ReasonInvalid), ContainSubstring("a post may take at most 262144")))
		before := read(ctx, p)
		now := before.DeepCopy()
		now.Spec.Targets[0].Caption = "mended"
		Expect(k8s.Patch(ctx, now, client.MergeFrom(before))).To(Succeed())
		Eventually(func() int64 { return read(ctx, p).Status.ObservedGeneration }).Should(Equal(now.Generation))
		Expect(conditionOf(ctx, p, v1alpha1.ConditionAccepted)()).To(HavePrefix(v1alpha1.ReasonInvalid))

		before = read(ctx, p)
		now = before.DeepCopy()
		now.Annotations = nil
		now.Spec.Targets[0].Caption = "small"
		Expect(k8s.Patch(ctx, now, client.MergeFrom(before))).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"small"}))
	})

	It("goes out if an earlier version accepted it, when posts could be larger", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "large", around, func(p *v1alpha1.Post) { p.Spec.Draft = true })
		p.Status.Phase, p.Status.ObservedGeneration = v1alpha1.PhaseDraft, p.Generation
		p.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted, Message: "a", LastTransitionTime: metav1.Now(),
		}}
		Expect(k8s.Status().Update(ctx, p)).To(Succeed())
		runManager()
		before := read(ctx, p)
		now := before.DeepCopy()
		now.Spec.Draft = false
		Expect(k8s.Patch(ctx, now, client.MergeFrom(before))).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"large"}))
	})
})
