// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/test/sandboxtest"
)

// refused creates a post that X refuses, and waits until it is finished.
func (t team) refused(ctx context.Context, text string, change ...func(*v1alpha1.Post)) *v1alpha1.Post {
	GinkgoHelper()
	t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: http.StatusForbidden})
	p := t.post(ctx, text, change...)
	Eventually(func() bool { return read(ctx, p).Status.Finished }).Should(BeTrue())
	Expect(phase(ctx, p)()).To(Equal(v1alpha1.PhaseFailed))
	return p
}

func retryOf(p *v1alpha1.Post) func(*v1alpha1.Post) {
	return func(retry *v1alpha1.Post) { retry.Spec.RetryOf = &v1alpha1.LocalReference{Name: p.Name} }
}

// retriedBy expects that both posts show that one retries the other.
func retriedBy(ctx context.Context, failed, retry *v1alpha1.Post) {
	GinkgoHelper()
	Expect(conditionOf(ctx, failed, v1alpha1.ConditionRetried)()).To(Equal(v1alpha1.ReasonRetried + `: target 0 (x) is retried by post "` + retry.Name + `"`))
	Expect(conditionOf(ctx, retry, v1alpha1.ConditionRetryOf)()).To(Equal(v1alpha1.ReasonRetry + `: retries target 0 of post "` + failed.Name + `"`))
	Expect(read(ctx, failed).Status.Targets[0].RetriedBy).To(Equal(retry.Name))
	Expect(read(ctx, retry).Status.Retry).To(HaveValue(Equal(v1alpha1.RetryStatus{Object: string(failed.UID), Targets: []int32{0}})))
}

var _ = Describe("A post that retries a failed one", func() {
	It("is part of a chain whose posts show both neighbours", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		first := t.refused(ctx, "words")
		second := t.refused(ctx, "words", retryOf(first))
		third := posted(ctx, t.post(ctx, "words", retryOf(second)))
		retriedBy(ctx, first, second)
		retriedBy(ctx, second, third)
		Expect(conditionOf(ctx, first, v1alpha1.ConditionRetryOf)()).To(BeEmpty())
		Expect(conditionOf(ctx, third, v1alpha1.ConditionRetried)()).To(BeEmpty())
		Expect(phase(ctx, first)()).To(Equal(v1alpha1.PhaseFailed), "failed is final")
		Expect(t.published(ctx)).To(Equal([]string{"words"}))
		Expect(publishesBy(t.account)).To(Equal(3))
	})

	It("is the only one that is sent if two retry it at once", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		failed := t.refused(ctx, "once")
		due := time.Now().Add(2 * time.Second)
		together := func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(due) }
		winner, other := t.post(ctx, "once", retryOf(failed), together), t.post(ctx, "once", retryOf(failed), together)
		Eventually(func() bool { return read(ctx, winner).Status.Finished && read(ctx, other).Status.Finished }).Should(BeTrue())
		if phase(ctx, other)() == v1alpha1.PhasePosted {
			winner, other = other, winner
		}
		Expect(phase(ctx, winner)()).To(Equal(v1alpha1.PhasePosted))
		retriedBy(ctx, failed, winner)
		Expect(phase(ctx, other)()).To(Equal(v1alpha1.PhaseFailed))
		Expect(messageOf(ctx, other)()).To(ContainSubstring(`is already retried by post "` + winner.Name + `"`))
		Expect(conditionOf(ctx, other, v1alpha1.ConditionRetryOf)()).To(BeEmpty())
		Expect(publishesBy(t.account)).To(Equal(2), "the refused call, and one more")
	})

	It("is sent although the failed post is deleted after the reservation", func(ctx SpecContext) {
		var failed *v1alpha1.Post
		runManager(func(o *post.Options) {
			o.Failpoint = func(point string) {
				if point == post.PointAfterReserve {
					Expect(k8s.Delete(ctx, failed.DeepCopy())).To(Succeed())
				}
			}
		})
		t := newTeam(ctx)
		failed = t.refused(ctx, "kept")
		retry := posted(ctx, t.post(ctx, "kept", retryOf(failed)))
		Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(failed), &v1alpha1.Post{}) }).Should(Satisfy(apierrors.IsNotFound))
		Expect(conditionOf(ctx, retry, v1alpha1.ConditionRetryOf)()).To(ContainSubstring(failed.Name))
		Expect(publishesBy(t.account)).To(Equal(2))
	})

	It("is not sent if the failed post was deleted before, since nothing can be reserved", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		failed := t.refused(ctx, "gone")
		retry := t.post(ctx, "gone", retryOf(failed), at(3*time.Second))
		Expect(k8s.Delete(ctx, failed.DeepCopy())).To(Succeed())
		Eventually(phase(ctx, retry)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(readyReason(ctx, retry)).To(Equal(v1alpha1.ReasonRetryRefused))
		Expect(messageOf(ctx, retry)()).To(ContainSubstring("no longer exists"))
		Expect(publishesBy(t.account)).To(Equal(1), "the refused call")
	})

	It("waits for the answer about an undecided post, and is not sent if that one is", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		undecided := t.post(ctx, "perhaps", func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: time.Now().Add(-24 * time.Hour).Format(time.RFC3339)}
		})
		Eventually(func() string { return readyReason(ctx, undecided) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		retry := t.post(ctx, "perhaps", retryOf(undecided))
		Eventually(messageOf(ctx, retry)).Should(ContainSubstring("answer as described in its OutcomeUnknown condition"))
		Expect(publishesBy(t.account)).To(BeZero())
		settle(ctx, undecided, "0=not-sent")
		posted(ctx, undecided)
		Eventually(phase(ctx, retry)).WithTimeout(time.Minute).Should(Equal(v1alpha1.PhaseFailed))
		Expect(messageOf(ctx, retry)()).To(ContainSubstring("is published"))
		Expect(publishesBy(t.account)).To(Equal(1))
	})
})
