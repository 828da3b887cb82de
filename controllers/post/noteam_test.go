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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/test/envtest"
)

var _ = Describe("A post in a namespace that no Team owns", func() {
	It("waits in every state, and continues when a Team owns the namespace", func(ctx SpecContext) {
		t := newTeam(ctx)
		passes := &envtest.Passes{}
		runManager(func(o *post.Options) {
			passes.Owned = func(ctx context.Context, namespace string) (bool, error) {
				var teams v1alpha1.TeamList
				err := k8s.List(ctx, &teams)
				for i := range teams.Items {
					if teams.Items[i].Spec.Namespace == namespace {
						return conditions.IsReady(teams.Items[i].Status.Conditions), err
					}
				}
				return namespace != t.namespace, err
			}
			o.Owned = passes.IsOwned
		})
		due, later := t.post(ctx, "now"), t.post(ctx, "in a moment", at(3*time.Second))
		draft := t.post(ctx, "kept", func(p *v1alpha1.Post) { p.Spec.Draft = true })
		for _, p := range []*v1alpha1.Post{due, later, draft} {
			Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonNoTeam))
		}
		Expect(read(ctx, draft).Status.Phase).To(Equal(v1alpha1.PhaseDraft))
		Eventually(phase(ctx, later)).Should(Equal(v1alpha1.PhaseProcessing), "the post is due")
		Expect(publishesBy(t.account)).To(BeZero())
		Expect(passes.Longest()).To(And(BeNumerically(">", 0), BeNumerically("<=", pacing.PostTimeout)), "a pass has an end")

		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}, Spec: v1alpha1.TeamSpec{Namespace: t.namespace}}
		Expect(envtest.Own(ctx, k8s, team)).To(Succeed())
		for _, p := range []*v1alpha1.Post{due, later} {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		Eventually(func() string { return readyReason(ctx, draft) }).Should(Equal(v1alpha1.ReasonDraft))
		Expect(publishesBy(t.account)).To(Equal(2))
	})

	It("that is a copy from a backup finds its outcome once its Team is ready, without asking a user", func(ctx SpecContext) {
		k, acme := newKeeping(), newTeam(ctx)
		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "of-" + acme.namespace}, Spec: v1alpha1.TeamSpec{Namespace: acme.namespace}}
		Expect(k8s.Create(ctx, team)).To(Succeed())
		var unready atomic.Bool
		passes := &envtest.Passes{Owned: func(context.Context, string) (bool, error) { return !unready.Load(), nil }}
		runManager(k.options, func(o *post.Options) { o.Owned = passes.IsOwned })
		p := posted(ctx, acme.apply(ctx, "launch", "hello"))
		was := read(ctx, p)
		remove(ctx, p)

		unready.Store(true)
		again := acme.restore(ctx, was)
		Eventually(func() string { return readyReason(ctx, again) }).Should(Equal(v1alpha1.ReasonNoTeam))
		unready.Store(false)
		conditions.Apply(&team.Status.Conditions, conditions.Summary{
			Ready: true, Reason: v1alpha1.ReasonNamespaceReady, Message: "as the test says", Progress: conditions.Settled,
		}, team.Generation, time.Now())
		Expect(k8s.Status().Update(ctx, team)).To(Succeed())
		Eventually(phase(ctx, again)).Should(Equal(v1alpha1.PhasePosted))
		Expect(read(ctx, again).Status.Targets[0].ExternalID).To(Equal(was.Status.Targets[0].ExternalID))
		Expect(publishesBy(acme.account)).To(Equal(1))
	})

	It("is warned about once, after there was time to create a Team", func(ctx SpecContext) {
		t, k := newTeam(ctx), newKeeping()
		runManager(k.options, func(o *post.Options) {
			o.Owned = func(context.Context, string) (bool, error) { return false, nil }
		})
		p := t.post(ctx, "hello", at(time.Hour))
		warnings := warned(ctx, t.namespace, p.Name, v1alpha1.ReasonNoTeam)
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonNoTeam), "the status is written immediately")
		wake := func(value string) {
			edit(ctx, p, func(p *v1alpha1.Post) { p.Labels = map[string]string{"woken": value} })
		}
		wake("early")
		Consistently(warnings, time.Second).Should(BeEmpty())
		k.ahead.Store(int64(conditions.NoTeamGrace))
		wake("late")
		Eventually(warnings).Should(HaveExactElements(ContainSubstring("no Team owns namespace")))
		wake("again")
		Consistently(warnings, time.Second).Should(HaveLen(1))
	})

	It("is recorded, if it finished before, when a Team owns the namespace", func(ctx SpecContext) {
		t, k := newTeam(ctx), newKeeping()
		name := "of-" + t.namespace
		runManager(k.options, func(o *post.Options) {
			o.Records.Owner = func(ctx context.Context, namespace string) (*v1alpha1.Team, error) {
				if err := k8s.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.Team{}); namespace == t.namespace && err != nil {
					return nil, client.IgnoreNotFound(err)
				}
				return ownerOf(ctx, namespace)
			}
			o.Owned = func(ctx context.Context, namespace string) (bool, error) {
				owner, err := o.Records.Owner(ctx, namespace)
				return owner != nil, err
			}
		})
		p := t.apply(ctx, "launch", "hello")
		Eventually(func() string { return readyReason(ctx, p) }).Should(Equal(v1alpha1.ReasonNoTeam))
		k.ahead.Store(int64(2 * time.Hour))
		edit(ctx, p, func(p *v1alpha1.Post) { p.Labels = map[string]string{"woken": "yes"} })
		Eventually(func() bool { return read(ctx, p).Status.Finished }).Should(BeTrue())
		Expect(read(ctx, p).Finalizers).To(BeEmpty(), "no page shows it")

		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TeamSpec{Namespace: t.namespace}}
		Expect(envtest.Own(ctx, k8s, team)).To(Succeed())
		Eventually(func() []string { return read(ctx, p).Finalizers }).Should(ContainElement(v1alpha1.DeliveryFinalizer))
		Eventually(func() *record.Record { return k.of(ctx, t.namespace, p.Name) }).Should(HaveField("UID", p.UID))
	})
})

// oddNames returns unusual names that Kubernetes accepts.
func oddNames() []string {
	return []string{
		"0", "1.2", "a.b.c-d", "posts", "edit", "unneeded.json", "herald-credentials", "herald-credentials-aaaa",
		strings.Repeat("n", 200), strings.Repeat("n", 201), strings.Repeat("n", 250), strings.Repeat("n", 253),
		strings.Repeat("7.", 126) + "7", strings.Repeat("n", 199) + "." + strings.Repeat("m", 53), strings.Repeat("n", 200) + ".json",
	}
}

var _ = Describe("A post works with every name that Kubernetes allows", func() {
	It("is published, leaves its record, and is matched to it when it is restored", func(ctx SpecContext) {
		k := newKeeping()
		runManager(k.options)
		acme := newTeam(ctx)
		connection := strings.Repeat("c.", 126) + "c"
		acme.account = acme.connect(ctx, connection)
		through := func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = connection }
		for i, name := range oddNames() {
			By(fmt.Sprintf("a name of %d characters: %.20s", len(name), name))
			text := fmt.Sprint("hello, by the name ", i)
			p := posted(ctx, acme.apply(ctx, name, text, through))
			remove(ctx, p)
			Expect(k.of(ctx, acme.namespace, name)).NotTo(BeNil())
			posted(ctx, acme.apply(ctx, name, text, through))
			Expect(publishesBy(acme.account)).To(Equal(i+1), "the post is not published again")
			Eventually(warned(ctx, acme.namespace, name, v1alpha1.ReasonAlreadyPublished)).ShouldNot(BeEmpty(), "events refer to the post")
		}
	})

	It("rejects a post that the web application cannot show, with the reason", func(ctx SpecContext) {
		acme := newTeam(ctx)
		err := k8s.Create(ctx, &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: acme.namespace, Name: "new"},
			Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{
				ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello",
			}}},
		})
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("posts/new in the web application")))
	})
})
