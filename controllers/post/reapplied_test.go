// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
)

// failing fails the first list of cancelled posts.
type failing struct {
	client.Reader

	failed *bool
}

func (f failing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.FieldSelector != nil && o.FieldSelector.String() == "status.phase=cancelled" && !*f.failed {
		*f.failed = true
		return errors.New("the first list fails")
	}
	return f.Reader.List(ctx, list, opts...)
}

var _ = Describe("A cancelled post that a tool applies again", func() {
	// scheduled applies a post as a generator writes it, including fields with false values.
	scheduled := func(ctx context.Context, t team, caption string, at time.Time) error {
		text := `{"apiVersion":"social.herald.dev/v1alpha1","kind":"Post","metadata":{"name":"again","namespace":"` + t.namespace + `"},"spec":{"category":"text",` +
			`"scheduledAt":"` + at.UTC().Format(time.RFC3339) + `","draft":false,"cancelled":false,"targets":[{"connectionRef":{"name":"x"},"caption":"` + caption + `"}]}}`
		p := &v1alpha1.Post{}
		p.Name, p.Namespace = "again", t.namespace
		return k8s.Patch(ctx, p, client.RawPatch(types.ApplyPatchType, []byte(text)), client.FieldOwner("kustomize-controller"), client.ForceOwnership)
	}
	cancelled := func(ctx context.Context, t team) *v1alpha1.Post {
		GinkgoHelper()
		Expect(scheduled(ctx, t, "hello", time.Now().Add(time.Hour))).To(Succeed())
		p := &v1alpha1.Post{}
		p.Name, p.Namespace = "again", t.namespace
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		Expect(cancelPost(ctx, p)).To(Succeed())
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseCancelled))
		return p
	}
	// seen expects that the status describes the last applied spec.
	seen := func(ctx context.Context, p *v1alpha1.Post) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			now := read(ctx, p)
			g.Expect(now.Status.ObservedGeneration).To(Equal(now.Generation), "tools wait for it")
			g.Expect(now.Status.Phase).To(Equal(v1alpha1.PhaseCancelled))
			ready := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReady)
			g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonCancelled))
			g.Expect(ready.Message).To(And(HavePrefix("cancelled on "+now.Status.CancelledAt.String()), HaveSuffix("apply it under another name")))
			var events eventsv1.EventList
			g.Expect(k8s.List(ctx, &events, client.InNamespace(p.Namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(HaveField("Type", "Warning"), HaveField("Reason", v1alpha1.ReasonCancelled), HaveField("Note", ready.Message))))
		}).Should(Succeed())
	}

	It("stays cancelled, whatever the file says, and says so", func(ctx SpecContext) {
		runManager()
		t := newTeam(ctx)
		p := cancelled(ctx, t)
		Expect(scheduled(ctx, t, "hello", time.Now().Add(time.Hour))).To(Succeed(), "a set that has the file is not held up")
		Expect(read(ctx, p).Spec.Cancelled).To(BeFalse(), "the tool finds what it has applied")
		seen(ctx, p)
		at := read(ctx, p).Status.CancelledAt
		Expect(scheduled(ctx, t, "edited, and due", time.Now().Add(-time.Second))).To(Succeed())
		seen(ctx, p)
		Expect(read(ctx, p).Status.CancelledAt).To(Equal(at))
		posted(ctx, t.post(ctx, "what comes after it"))
		Expect(t.published(ctx)).To(ConsistOf("what comes after it"))
	})

	It("is recorded as cancelled for good if an earlier version cancelled it", func(ctx SpecContext) {
		m := startManager()
		t := newTeam(ctx)
		p := cancelled(ctx, t)
		m.stop()
		before := read(ctx, p)
		before.Status.CancelledAt = nil
		Expect(k8s.Status().Update(ctx, before)).To(Succeed())
		Expect(scheduled(ctx, t, "hello", time.Now().Add(time.Hour))).To(MatchError(ContainSubstring("the spec is frozen")), "nothing says that it stays cancelled")
		failed := false
		runManager(func(o *post.Options) { o.APIReader = failing{o.APIReader, &failed} })
		Eventually(func() *v1alpha1.Time { return read(ctx, p).Status.CancelledAt }).Should(Equal(before.Status.FinishedAt))
		Expect(failed).To(BeTrue(), "the first list failed, and was repeated")
		Expect(scheduled(ctx, t, "hello", time.Now().Add(time.Hour))).To(Succeed())
		seen(ctx, p)
	})

	It("is described by the next manager if none saw it applied", func(ctx SpecContext) {
		m := startManager()
		t := newTeam(ctx)
		p := cancelled(ctx, t)
		m.stop()
		Expect(scheduled(ctx, t, "hello again", time.Now().Add(-time.Second))).To(Succeed())
		runManager()
		seen(ctx, p)
		Expect(t.published(ctx)).To(BeEmpty())
	})
})
