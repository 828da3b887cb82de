// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
)

var _ = Describe("A post from an earlier version", func() {
	It("is never sent again if that version recorded an outcome in phase and reason only", func(ctx SpecContext) {
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
		Expect(t.published(ctx)).To(Equal([]string{"waiting"}), "the target was waiting for a retry")
		var states []v1alpha1.TargetState
		for _, target := range read(ctx, p).Status.Targets {
			states = append(states, target.State)
		}
		Expect(states).To(Equal([]v1alpha1.TargetState{v1alpha1.TargetPosted, v1alpha1.TargetFailed, v1alpha1.TargetUndecided, v1alpha1.TargetPosted}))
		Expect(read(ctx, p).Status.Targets[1].Message).To(Equal("X does not want it"), "the platform's message is preserved")

		settle(ctx, p, "2=not-sent")
		Eventually(func() []string { return t.published(ctx) }).Should(ConsistOf("waiting", "in doubt"))
		Eventually(func() bool { return read(ctx, p).Status.Finished }).Should(BeTrue())
		Consistently(func() []string { return t.published(ctx) }).Should(HaveLen(2))
	})
})

var _ = Describe("A post that exceeds the size limit", func() {
	// around makes a small post large: this is the maximum size of annotations in Kubernetes.
	around := func(p *v1alpha1.Post) {
		p.Annotations = map[string]string{"example.com/much": strings.Repeat("a", 262_000)}
		p.Labels = map[string]string{"example.com/long": strings.Repeat("a", 63), "example.com/longer": strings.Repeat("a", 63)}
	}

	It("is rejected if the webhook did not, and remains so", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		p := t.post(ctx, "large", around, at(3*time.Second))
		Eventually(conditionOf(ctx, p, v1alpha1.ConditionAccepted)).
			Should(And(HavePrefix(v1alpha1.ReasonInvalid), ContainSubstring("a post may take at most 262144")))
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

	It("is published if an earlier version with a higher limit accepted it", func(ctx SpecContext) {
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

// counted counts the posts that are read from the API server.
type counted struct {
	client.Reader
	posts atomic.Int64
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*v1alpha1.Post); ok {
		c.posts.Add(1)
	}
	return c.Reader.Get(ctx, key, obj, opts...)
}

var _ = Describe("A large post, whose texts the cache omits", func() {
	var live *counted
	BeforeEach(func() {
		live = &counted{}
		runManager(func(o *post.Options) {
			live.Reader = o.APIReader
			o.APIReader = live
		})
	})
	// to returns a change that gives a post a different text for each of the accounts, and these texts.
	to := func(ctx context.Context, t team, accounts, characters int) (change func(*v1alpha1.Post), says []string) {
		names := []string{"x"}
		for i := range accounts - 1 {
			name := fmt.Sprintf("x-%d", i)
			t.connect(ctx, name)
			names = append(names, name)
		}
		for i := range accounts {
			says = append(says, strings.Repeat(string(rune('a'+i)), characters))
		}
		return func(p *v1alpha1.Post) {
			p.Spec.Targets = nil
			for i, name := range names {
				p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: says[i]})
			}
		}, says
	}
	// texts returns the stored captions of a post.
	texts := func(ctx context.Context, p *v1alpha1.Post) (all []string) {
		for _, target := range read(ctx, p).Spec.Targets {
			all = append(all, target.Caption)
		}
		return all
	}

	It("is published with every text, and keeps them", func(ctx SpecContext) {
		t := newTeam(ctx)
		change, says := to(ctx, t, 20, 270)
		p := posted(ctx, t.post(ctx, "large", change, at(3*time.Second)))
		Expect(texts(ctx, p)).To(Equal(says))
		Expect(t.published(ctx)).To(Equal(says[:1]))
		Expect(live.posts.Load()).To(BeNumerically(">", 0), "the text was read from the API server")
		for i := range read(ctx, p).Status.Targets {
			Expect(read(ctx, p).Status.Targets[i].ExternalID).NotTo(BeEmpty())
		}
	})

	It("waits, and is changed, cancelled and deleted", func(ctx SpecContext) {
		t := newTeam(ctx)
		change, says := to(ctx, t, 20, 270)
		p := t.post(ctx, "large", change, at(time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		Expect(texts(ctx, p)).To(Equal(says))
		before := read(ctx, p)
		now := before.DeepCopy()
		now.Spec.Cancelled = true
		Expect(k8s.Patch(ctx, now, client.MergeFrom(before))).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
		Expect(texts(ctx, p)).To(Equal(says))
		Expect(k8s.Delete(ctx, p)).To(Succeed())
		Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(p), &v1alpha1.Post{}) }).ShouldNot(Succeed())
	})

	It("gets a missing finalizer, and keeps its texts", func(ctx SpecContext) {
		t := newTeam(ctx)
		change, says := to(ctx, t, 20, 270)
		p := posted(ctx, t.post(ctx, "large", change, func(p *v1alpha1.Post) { p.Finalizers = nil }))
		Expect(texts(ctx, p)).To(Equal(says))
		Expect(t.published(ctx)).To(Equal(says[:1]))
	})

	It("of ordinary size does not need an additional read", func(ctx SpecContext) {
		t := newTeam(ctx)
		change, _ := to(ctx, t, 10, 270)
		posted(ctx, t.post(ctx, "ordinary", change))
		Expect(live.posts.Load()).To(BeZero())
	})
})
