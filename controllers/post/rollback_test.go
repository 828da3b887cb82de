// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/rollback"
	"github.com/herald-social/herald/posting/record"
)

var _ = Describe("A post of a cluster that was put back", func() {
	DescribeTable("is asked about again when it is deleted and made anew", func(ctx SpecContext, create func(ctx SpecContext, t team) *v1alpha1.Post) {
		t, k := newTeam(ctx), newKeeping()
		p := create(ctx, t)
		noticed := time.Now().Add(time.Second)
		runManager(k.options, func(o *post.Options) {
			o.Rollback = func(context.Context) (rollback.Status, error) {
				return rollback.Status{LastRollback: &rollback.Rollback{DetectedAt: noticed}}, nil
			}
		})
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Eventually(func() []string { return read(ctx, p).Finalizers }).Should(ContainElement(v1alpha1.DeliveryFinalizer))

		remove(ctx, p)
		Expect(k.of(ctx, t.namespace, p.Name)).To(HaveField("Targets", HaveLen(1)), "it may be out")
		Eventually(time.Now).Should(BeTemporally(">", noticed.Add(time.Second)), "what is made now is from after it was noticed")
		next := t.apply(ctx, p.Name, p.Spec.Targets[0].Caption)
		Eventually(func() string { return readyReason(ctx, next) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(publishesBy(t.account)).To(BeZero())
	},
		Entry("one that came through the API", func(ctx SpecContext, t team) *v1alpha1.Post { return t.post(ctx, "through the API") }),
		Entry("one that was applied", func(ctx SpecContext, t team) *v1alpha1.Post { return t.apply(ctx, "launch", "applied") }),
	)

	DescribeTable("keeps the targets about which a person is asked", func(ctx SpecContext, edit func(targets []v1alpha1.PostTarget) []v1alpha1.PostTarget) {
		t, k := newTeam(ctx), newKeeping()
		second := t.connect(ctx, "second")
		p := t.apply(ctx, "launch", "hello", func(p *v1alpha1.Post) {
			p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "second"}, Caption: "hello"})
		})
		noticed := v1alpha1.NewTime(time.Now().Add(time.Second)).Time
		runManager(k.options, func(o *post.Options) {
			o.Rollback = func(context.Context) (rollback.Status, error) {
				return rollback.Status{LastRollback: &rollback.Rollback{DetectedAt: noticed}}, nil
			}
		})
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))

		before := read(ctx, p).Spec.Targets
		for _, targets := range [][]v1alpha1.PostTarget{edit(slices.Clone(before)), before} {
			now, err := tryEdit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Targets = targets })
			if err != nil {
				Expect(err).To(MatchError(ContainSubstring("the targets are frozen")))
				continue
			}
			Eventually(func() int64 { return read(ctx, p).Status.ObservedGeneration }).Should(Equal(now.Generation), "judged again")
		}
		Expect(read(ctx, p).Status.Targets).To(HaveEach(SatisfyAll(HaveField("Attempt", BeNil()), HaveField("State", v1alpha1.TargetUndecided))), "they may be out")
		Expect(publishesBy(t.account) + publishesBy(second)).To(BeZero())
	},
		Entry("one that an edit takes out and another one puts back", func(targets []v1alpha1.PostTarget) []v1alpha1.PostTarget { return targets[:1] }),
		Entry("one that is put back behind another one", func(targets []v1alpha1.PostTarget) []v1alpha1.PostTarget { return targets[1:] }),
		Entry("with other words", func(targets []v1alpha1.PostTarget) []v1alpha1.PostTarget {
			targets[1].Caption = "mended"
			return targets
		}),
	)

	DescribeTable("is looked up before it is told to be cancelled", func(ctx SpecContext, keep func(ctx SpecContext, t team, k *keeping, p *v1alpha1.Post), want v1alpha1.PostPhase, reason string) {
		t, k := newTeam(ctx), newKeeping()
		due := v1alpha1.NewTime(time.Now())
		p := t.apply(ctx, "launch", "hello", func(p *v1alpha1.Post) { p.Spec.ScheduledAt = &due })
		keep(ctx, t, k, p)
		p.Spec.Cancelled = true
		Expect(k8s.Update(ctx, p)).To(Succeed())
		runManager(k.options, func(o *post.Options) {
			o.Rollback = func(context.Context) (rollback.Status, error) {
				return rollback.Status{LastRollback: &rollback.Rollback{DetectedAt: due.Add(time.Second)}}, nil
			}
		})
		Eventually(phase(ctx, p)).Should(Equal(want))
		Expect(readyReason(ctx, p)).To(Equal(reason))
		Expect(publishesBy(t.account)).To(BeZero())
	},
		Entry("one that went out", func(ctx SpecContext, t team, k *keeping, p *v1alpha1.Post) {
			was := p.DeepCopy()
			was.Status.Targets = []v1alpha1.TargetStatus{{
				State: v1alpha1.TargetPosted, Platform: v1alpha1.PlatformX, ExternalID: "7",
				Attempt: &v1alpha1.Attempt{Number: 1, ID: "a1", AccountID: t.account.ID, Outcome: v1alpha1.OutcomePosted, StartedAt: *p.Spec.ScheduledAt, SendBefore: *p.Spec.ScheduledAt},
			}}
			of := archive.Team{Namespace: t.namespace, Name: "of-" + t.namespace}
			nobodys := func(string) (v1alpha1.Platform, string, bool) { return "", "", false }
			Expect(k.Put(ctx, of, p.Name, func([]byte) ([]byte, error) { return record.New(was, of.Name, nobodys).Encode() })).To(Succeed())
		}, v1alpha1.PhasePosted, v1alpha1.ReasonPosted),
		Entry("one of which nothing is kept", func(SpecContext, team, *keeping, *v1alpha1.Post) {}, v1alpha1.PhaseFailed, v1alpha1.ReasonOutcomeUnknown),
	)
})
