// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("The final state of each target has an event of its own", func() {
	// told returns the final events about a post: reason, field, related connection and the start of the note.
	told := func(ctx context.Context, p *v1alpha1.Post) func() []string {
		return func() (told []string) {
			var list eventsv1.EventList
			Expect(k8s.List(ctx, &list, client.InNamespace(p.Namespace))).To(Succeed())
			for i := range list.Items {
				e := &list.Items[i]
				if e.Regarding.UID != p.UID || e.Reason == v1alpha1.ReasonSettling {
					continue
				}
				related := ""
				if e.Related != nil {
					related = e.Related.Kind + "/" + e.Related.Name
				}
				Expect(e.Series).To(BeNil(), "%s is merged with another event: %s", e.Reason, e.Note)
				told = append(told, fmt.Sprintf("%s %s %s %.12s", e.Reason, e.Regarding.FieldPath, related, e.Note))
			}
			return told
		}
	}
	to := func(connections ...string) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			p.Spec.Targets = nil
			for i, name := range connections {
				p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{
					ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: fmt.Sprint("what is sent to ", name, " as target ", i),
				})
			}
		}
	}
	BeforeEach(func() {
		runManager(func(o *post.Options) { o.StartingDeadline = 30 * time.Minute })
	})

	It("if one account accepts a post and two reject it", func(ctx SpecContext) {
		t := newTeam(ctx)
		for _, name := range []string{"second", "third"} {
			refuses := team{t.namespace, t.connect(ctx, name)}
			refuses.fault(ctx, sandboxtest.Fault{Operation: "publish", Kind: "status", Status: 403, Times: 9})
		}
		p := t.post(ctx, "", to("x", "second", "third"))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Eventually(told(ctx, p)).Should(ConsistOf(
			"Posted spec.targets[0] Connection/x target 0: pu",
			"Refused spec.targets[1] Connection/second target 1 (x)",
			"Refused spec.targets[2] Connection/third target 2 (x)",
		))
	})

	It("if two targets have the same account", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := posted(ctx, t.post(ctx, "", to("x", "x")))
		Eventually(told(ctx, p)).Should(ConsistOf(
			"Posted spec.targets[0] Connection/x target 0: pu", "Posted spec.targets[1] Connection/x target 1: pu",
		))
	})

	It("if the starting deadline of all targets has passed", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "second")
		p := t.post(ctx, "", to("x", "second"), at(-time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseFailed))
		Eventually(told(ctx, p)).Should(ConsistOf(
			"MissedSchedule spec.targets[0] Connection/x target 0 (x)", "MissedSchedule spec.targets[1] Connection/second target 1 (x)",
		))
	})

	It("if a post is scheduled, which does not emit an event", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.post(ctx, "hello", at(3*time.Second))
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonScheduled))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		Eventually(told(ctx, p)).Should(ConsistOf("Posted spec.targets[0] Connection/x target 0: pu"))
	})
})

// remarking is a variant of X that adds a note to everything that it publishes.
type remarking struct{ fast }

func (r remarking) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	result := r.fast.Publish(ctx, job)
	result.Note = "the thumbnail was refused"
	return result
}

var _ = Describe("A platform's note about a published post", Ordered, func() {
	BeforeAll(func() {
		runManager(func(o *post.Options) {
			inner, _ := o.Platforms[v1alpha1.PlatformX].(fast)
			o.Platforms[v1alpha1.PlatformX] = remarking{inner}
		})
	})

	It("is an event, and the post is posted", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := posted(ctx, t.post(ctx, "noted"))
		Eventually(func() []string { return t.events(ctx, p) }).Should(ContainElement("PostedWithNote: target 0 (x): the thumbnail was refused"))
	})
})
