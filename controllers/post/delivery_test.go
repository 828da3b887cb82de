// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/sandboxtest"
)

// writeCount counts a manager's writes in one namespace. The manager also works on posts that other specs have left
// behind.
type writeCount struct {
	namespace atomic.Value
	n         atomic.Int32
}

// of starts counting for a namespace.
func (w *writeCount) of(namespace string) {
	w.namespace.Store(namespace)
	w.n.Store(0)
}

func (w *writeCount) add(obj client.Object) {
	if obj.GetNamespace() == w.namespace.Load() {
		w.n.Add(1)
	}
}

// interceptWrites returns functions that count a manager's writes to posts.
func interceptWrites(w *writeCount) interceptor.Funcs {
	return interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			w.add(obj)
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.add(obj)
			return c.Patch(ctx, obj, patch, opts...)
		},
	}
}

var _ = Describe("Delivery", Ordered, func() {
	var m *manager
	var writes writeCount
	BeforeAll(func() { m = startDisturbed(interceptWrites(&writes)) })
	AfterAll(func() { m.stop() })

	It("publishes an immediate post once, in two writes", func(ctx SpecContext) {
		t := newTeam(ctx)
		writes.of(t.namespace)
		calls := publishCalls(ctx)
		p := posted(ctx, t.post(ctx, "hello"))
		Expect(publishCalls(ctx) - calls).To(Equal(1))
		Expect(t.published(ctx)).To(Equal([]string{"hello"}))
		Expect(writes.n.Load()).To(BeEquivalentTo(2), "one claim, one record")
		now := read(ctx, p)
		target := now.Status.Targets[0]
		Expect(target.ExternalID).NotTo(BeEmpty())
		Expect(target.ExternalURL).To(HaveSuffix("/" + t.account.Username + "/status/" + target.ExternalID))
		Expect(target.PostedAt).NotTo(BeNil())
		Expect(now.Status.Finished).To(BeTrue())
		Expect(now.Status.Platforms).To(Equal("x"))
		Expect(now.Status.ObservedGeneration).To(Equal(now.Generation))
		Expect(meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		Expect(meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionAccepted)).To(BeTrue())
		Expect(meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReconciling)).To(BeNil())
	})

	It("publishes a post that was applied without a finalizer", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := posted(ctx, t.post(ctx, "by kubectl", func(p *v1alpha1.Post) { p.Finalizers = nil }))
		Expect(read(ctx, p).Finalizers).To(ConsistOf(v1alpha1.DeliveryFinalizer))
		Expect(t.published(ctx)).To(Equal([]string{"by kubectl"}))
	})

	It("does not publish a scheduled post before its time", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "later", at(1500*time.Millisecond))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		Expect(t.published(ctx)).To(BeEmpty())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		posts, err := platform.Posts(ctx, "x", t.account.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(posts).To(HaveLen(1))
		Expect(posts[0].CreatedAt).To(BeTemporally(">=", p.Spec.ScheduledAt.Time))
	})

	It("keeps a draft until it is promoted", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "draft", func(p *v1alpha1.Post) { p.Spec.Draft = true })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseDraft))
		Expect(t.published(ctx)).To(BeEmpty())
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Draft = false })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"draft"}))
	})

	It("validates all rules when a draft is promoted", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "fine", func(p *v1alpha1.Post) {
			p.Spec.Draft = true
			p.Spec.Targets[0].Caption = fmt.Sprintf("%0281d", 0)
		})
		Eventually(messageOf(ctx, p)).Should(ContainSubstring("spec.targets[0].caption"))
		now := read(ctx, p)
		Expect(now.Status.Phase).To(Equal(v1alpha1.PhaseDraft), "an invalid draft remains a draft")
		Expect(meta.IsStatusConditionFalse(now.Status.Conditions, v1alpha1.ConditionAccepted)).To(BeTrue())
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Draft, p.Spec.Targets[0].Caption = false, "mended" })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"mended"}))
	})

	It("waits for a connection that does not exist yet", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "early", func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "later" })
		Eventually(conditionOf(ctx, p, v1alpha1.ConditionAccepted)).Should(HavePrefix(v1alpha1.ReasonConnectionNotFound + ":"))
		t.account = t.connect(ctx, "later")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"early"}))
	})

	It("waits for a connection that is not ready", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.setReady(ctx, "x", metav1.ConditionFalse, v1alpha1.ReasonRevoked, t.account.Username)
		p := t.post(ctx, "patience", at(time.Second)) // the manager has read the connection by then
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonConnectionNotReady))
		Expect(t.published(ctx)).To(BeEmpty())
		t.setReady(ctx, "x", metav1.ConditionTrue, v1alpha1.ReasonConnected, t.account.Username)
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
	})

	It("cancels a scheduled post", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "never", at(time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		Expect(cancelPost(ctx, p)).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("ends a cancellation that races with the claim in exactly one of the two", func(ctx SpecContext) {
		t := newTeam(ctx)
		const n = 40
		due := time.Now().Add(2 * time.Second)
		posts := make([]*v1alpha1.Post, n)
		for i := range posts {
			posts[i] = t.post(ctx, fmt.Sprintf("race %d", i), func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(due) })
		}
		cancelled := make([]bool, n)
		var wg sync.WaitGroup
		for i := range posts {
			wg.Go(func() {
				defer GinkgoRecover()
				timer := time.NewTimer(time.Until(due) + time.Duration(i)*5*time.Millisecond)
				defer timer.Stop()
				<-timer.C
				cancelled[i] = cancelPost(ctx, posts[i]) == nil
			})
		}
		wg.Wait()
		texts := func() []string { return t.published(ctx) }
		for i, p := range posts {
			if cancelled[i] {
				Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
				Expect(texts()).NotTo(ContainElement(p.Spec.Targets[0].Caption))
			} else {
				Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
				Expect(texts()).To(ContainElement(p.Spec.Targets[0].Caption))
			}
		}
	})

	It("fails a post whose starting deadline has passed", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "old news", at(-2*time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(readyReason(ctx, p)).To(Equal(v1alpha1.ReasonMissedSchedule))
		Expect(t.published(ctx)).To(BeEmpty())
		_, err := tryEdit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Hour)) })
		Expect(err).To(MatchError(ContainSubstring("finished")), "a finished post is not reconciled again")
	})

	It("delivers a post whose time has just passed", func(ctx SpecContext) {
		t := newTeam(ctx)
		posted(ctx, t.post(ctx, "just now", at(-time.Minute)))
	})

	It("does not send a copy restored from a backup until a user confirms it", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "restored", func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: time.Now().Add(-24 * time.Hour).Format(time.RFC3339)}
		})
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonOutcomeUnknown))
		Expect(t.published(ctx)).To(BeEmpty())
		settle(ctx, p, "0=not-sent")
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(t.published(ctx)).To(Equal([]string{"restored"}))
		Expect(read(ctx, p).Annotations).NotTo(HaveKey(v1alpha1.SettleAnnotation))
	})

	It("publishes to several accounts concurrently", func(ctx SpecContext) {
		t := newTeam(ctx)
		other := t.connect(ctx, "second")
		writes.of(t.namespace)
		p := t.post(ctx, "both", func(p *v1alpha1.Post) {
			at(time.Second)(p)
			p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "second"}, Caption: "both"})
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(writes.n.Load()).To(BeEquivalentTo(3), "one when it is accepted, one claim for both, one record for both")
		Expect(t.published(ctx)).To(Equal([]string{"both"}))
		Expect(team{account: other}.published(ctx)).To(Equal([]string{"both"}))
	})

	It("keeps posted targets when another target fails", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "second")
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 403})
		p := t.post(ctx, "half", func(p *v1alpha1.Post) {
			p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "second"}, Caption: "half"})
		})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		now := read(ctx, p)
		Expect(now.Status.Targets[0].Phase).To(Equal(v1alpha1.PhaseFailed))
		Expect(now.Status.Targets[0].Message).NotTo(BeEmpty())
		Expect(now.Status.Targets[1].Phase).To(Equal(v1alpha1.PhasePosted))
		Expect(meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
	})

	It("publishes to one account in the order of scheduled times, one call at a time", func(ctx SpecContext) {
		t := newTeam(ctx)
		due := time.Now().Add(time.Second)
		var posts []*v1alpha1.Post
		for i := range 20 {
			posts = append(posts, t.post(ctx, fmt.Sprintf("in turn %02d", i), func(p *v1alpha1.Post) {
				p.Spec.ScheduledAt = v1alpha1.NewTimePtr(due.Add(time.Duration(i) * time.Millisecond))
			}))
		}
		for _, p := range posts {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		Expect(t.published(ctx)).To(HaveLen(20))
	})

	Describe("deletion", func() {
		It("removes the finalizer of a finished post", func(ctx SpecContext) {
			t := newTeam(ctx)
			p := posted(ctx, t.post(ctx, "short life"))
			Expect(k8s.Delete(ctx, p)).To(Succeed())
			Eventually(gone(ctx, p)).Should(BeTrue())
		})

		It("does not publish a scheduled post that was deleted", func(ctx SpecContext) {
			t := newTeam(ctx)
			p := t.post(ctx, "gone", at(time.Second))
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
			Expect(k8s.Delete(ctx, p)).To(Succeed())
			Eventually(gone(ctx, p)).Should(BeTrue())
			Consistently(func() []string { return t.published(ctx) }, 2*time.Second).Should(BeEmpty())
		})

		It("keeps a deleted post until its call has returned", func(ctx SpecContext) {
			t := newTeam(ctx)
			t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "delay", DelayMS: 1000})
			p := t.post(ctx, "in flight")
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseProcessing))
			Expect(k8s.Delete(ctx, p)).To(Succeed())
			Expect(read(ctx, p).DeletionTimestamp).NotTo(BeNil())
			Eventually(gone(ctx, p)).Should(BeTrue())
			Expect(t.published(ctx)).To(Equal([]string{"in flight"}))
		})
	})
})

var _ = Describe("Two concurrent managers", func() {
	It("publish each post exactly once", func(ctx SpecContext) {
		t := newTeam(ctx)
		var posts []*v1alpha1.Post
		for i := range 60 {
			posts = append(posts, t.post(ctx, fmt.Sprintf("twin %d", i), at(2*time.Second)))
		}
		a, b := startManager(), startManager()
		defer func() { a.stop(); b.stop() }()
		for _, p := range posts {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		Expect(t.published(ctx)).To(HaveLen(60))
	})
})

func readyReason(ctx context.Context, p *v1alpha1.Post) string {
	c := meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		return ""
	}
	return c.Reason
}

// cancelPost cancels a post as DELETE does in the REST API: it reads, decides, and writes at the resourceVersion that
// was read.
func cancelPost(ctx context.Context, p *v1alpha1.Post) error {
	for {
		now := read(ctx, p)
		if now.Status.Phase == v1alpha1.PhaseProcessing || now.Status.Phase == v1alpha1.PhasePosted {
			return errors.New("already being published")
		}
		now.Spec.Cancelled = true
		if err := k8s.Update(ctx, now); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func settle(ctx context.Context, p *v1alpha1.Post, outcome string) {
	now := read(ctx, p)
	base := now.DeepCopy()
	metav1.SetMetaDataAnnotation(&now.ObjectMeta, v1alpha1.SettleAnnotation, outcome)
	Expect(k8s.Patch(ctx, now, client.MergeFrom(base))).To(Succeed())
}

var _ = Describe("Two posts with the same text on one X account", func() {
	DescribeTable("are not mistaken for each other when X rejects the second", func(ctx SpecContext, ofTwoTeams, restart bool) {
		t := newTeam(ctx)
		other := t
		if ofTwoTeams {
			other = newTeam(ctx)
			other.share(ctx, v1alpha1.PlatformX, "too", t.account)
		}
		m := startManager()
		DeferCleanup(func() { m.stop() })
		posted(ctx, t.post(ctx, "the same words"))
		if restart {
			m.stop()
			m = startManager()
		}
		second := other.post(ctx, "the same words", func(p *v1alpha1.Post) {
			if ofTwoTeams {
				p.Spec.Targets[0].ConnectionRef.Name = "too"
			}
		})
		Eventually(phase(ctx, second), 90*time.Second).Should(Equal(v1alpha1.PhaseFailed))
		target := read(ctx, second).Status.Targets[0]
		Expect(target.ExternalID).To(BeEmpty())
		Expect(target.Blocked).To(HaveValue(And(
			HaveField("Reason", v1alpha1.ReasonRefused), HaveField("Problem", ContainSubstring("has published the same content before")),
		)))
		Expect(publishesBy(t.account)).To(Equal(2), "the deleted post is not published again")
	},
		Entry("by one team", false, false),
		Entry("by one team, in another process", false, true),
		Entry("by two teams", true, false),
		Entry("by two teams, in another process", true, true),
	)
})
