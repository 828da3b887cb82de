// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// preparedReason returns the status and the reason of a post's Prepared condition, or "" if there is none.
func preparedReason(ctx context.Context, p *v1alpha1.Post) func() string {
	return func() string {
		c := meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionPrepared)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Reason
	}
}

// arrivedAtX counts the calls to one of X's operations.
func arrivedAtX(ctx context.Context, operation string) int {
	GinkgoHelper()
	calls := suite.Must(platform.Calls(ctx, "x"))
	return calls[operation]
}

var _ = Describe("A scheduled post with files", Ordered, func() {
	const isReady = "True Prepared"
	BeforeAll(func() { runManager() })

	It("is prepared ahead of its time, and not published", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "later", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		now := read(ctx, p)
		Expect(now.Status.Phase).To(Equal(v1alpha1.PhaseScheduled))
		Expect(now.Status.Targets[0].Attempt).To(BeNil(), "nothing is claimed")
		Expect(now.Status.Targets[0].Prepared.Checkpoint).NotTo(BeEmpty())
		Expect(t.published(ctx)).To(BeEmpty())
	})

	It("can be cancelled all the same", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "never", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		Expect(cancelPost(ctx, read(ctx, p))).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
		Expect(preparedReason(ctx, p)()).To(BeEmpty(), "nothing is kept ready")
	})

	It("is left alone until its time comes near", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		before := arrivedAtX(ctx, "upload")
		p := t.post(ctx, "far", showing("a"), at(10*time.Hour))
		near := t.post(ctx, "near", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, near)).Should(Equal(isReady))
		Expect(phase(ctx, p)()).To(Equal(v1alpha1.PhaseScheduled))
		Expect(preparedReason(ctx, p)()).To(BeEmpty())
		Expect(arrivedAtX(ctx, "upload") - before).To(Equal(1))
	})

	It("is prepared anew when it is edited", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		png := file(ctx, t, "b", "picture.png", v1alpha1.MimePNG)
		p := t.post(ctx, "changes", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		first := read(ctx, p).Status.Targets[0].Prepared.ContentHash
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.Image.MediaRefs[0].Name = "b" })
		Eventually(func() *v1alpha1.Prepared { return read(ctx, p).Status.Targets[0].Prepared }).Should(
			And(Not(BeNil()), HaveField("ContentHash", Not(Equal(first)))), "it is nil for a moment, and then of the other file")
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Second)) })
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		posts := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(posts).To(HaveLen(1))
		Expect(posts[0].Media[0].SHA256).To(Equal(png))
	})

	It("says early what cannot be prepared, and is published all the same once it can", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		t.fault(ctx, sandboxtest.Fault{Operation: "upload", Kind: "status", Status: 503, Times: 1})
		p := t.post(ctx, "troubled", showing("a"), at(3*time.Second))
		Eventually(preparedReason(ctx, p)).Should(Equal("False PreparationFailed"))
		c := meta.FindStatusCondition(read(ctx, p).Status.Conditions, v1alpha1.ConditionPrepared)
		Expect(c.Message).To(ContainSubstring("target 0 (x): "))
		Expect(phase(ctx, p)()).To(Equal(v1alpha1.PhaseScheduled), "the post has not failed")
		Eventually(func() []string { return t.events(ctx, p) }).Should(ContainElement(HavePrefix("PreparationFailed: target 0 (x)")))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(preparedReason(ctx, p)()).To(BeEmpty())
	})

	It("waits with it for its connection", func(ctx SpecContext) {
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		t.setReady(ctx, "x", metav1.ConditionFalse, v1alpha1.ReasonRevoked, t.account.Username)
		p := t.post(ctx, "waits", showing("a"), at(10*time.Minute))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		Expect(preparedReason(ctx, p)()).To(BeEmpty())
		t.setReady(ctx, "x", metav1.ConditionTrue, v1alpha1.ReasonConnected, t.account.Username)
		Eventually(preparedReason(ctx, p)).Should(Equal(isReady))
	})
})

var _ = Describe("What was prepared", func() {
	It("is used after a restart, so that at its time only the visible call is made", func(ctx SpecContext) {
		m := startManager()
		t := newTeam(ctx)
		jpeg := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "kept", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		m.stop()
		before := map[string]int{}
		for _, operation := range []string{"upload", "status", "publish"} {
			before[operation] = arrivedAtX(ctx, operation)
		}
		edit(ctx, p, func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Second)) })

		runManager()
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Expect(arrivedAtX(ctx, "upload")).To(Equal(before["upload"]), "nothing is uploaded twice")
		Expect(arrivedAtX(ctx, "status")).To(Equal(before["status"]), "nor asked for")
		Expect(arrivedAtX(ctx, "publish")).To(Equal(before["publish"] + 1))
		posts := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(posts).To(HaveLen(1))
		Expect(posts[0].Media[0].SHA256).To(Equal(jpeg))
		Expect(read(ctx, p).Status.Targets[0].Prepared).To(BeNil(), "the attempt remembers it")
	})

	It("is made again if the platform has it no more", func(ctx SpecContext) {
		m := startManager()
		t := newTeam(ctx)
		jpeg := file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "gone", showing("a"), at(10*time.Minute))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		m.stop()
		now := read(ctx, p)
		now.Status.Targets[0].Prepared.Checkpoint = "1404404404404404404" // X knows no such file
		Expect(k8s.Status().Update(ctx, now)).To(Succeed())
		now.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now())
		Expect(k8s.Update(ctx, now)).To(Succeed())
		runManager()
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		posts := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(posts).To(HaveLen(1))
		Expect(posts[0].Media[0].SHA256).To(Equal(jpeg))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(2), "X refused what it did not know")
	})

	It("fails for good if the platform refuses what was just made", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		file(ctx, t, "a", "picture.jpg", v1alpha1.MimeJPEG)
		p := t.post(ctx, "refused", showing("a"), at(2*time.Second))
		Eventually(preparedReason(ctx, p)).Should(Equal("True Prepared"))
		t.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 400, Times: 3})
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Expect(read(ctx, p).Status.Targets[0].Attempt.Number).To(BeEquivalentTo(2), "once more with a fresh upload, and no more")
	})
})

// events returns the reasons and notes of the events about an object.
func (t team) events(ctx context.Context, about client.Object) (told []string) {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(k8s.List(ctx, &list, client.InNamespace(t.namespace))).To(Succeed())
	for i := range list.Items {
		if list.Items[i].Regarding.UID == about.GetUID() {
			told = append(told, list.Items[i].Reason+": "+list.Items[i].Note)
		}
	}
	return told
}
