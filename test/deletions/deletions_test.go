// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package deletions_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/test/suite"
)

// gone reports whether an object has been deleted.
func gone(ctx context.Context, object client.Object) func() (bool, error) {
	return func() (bool, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
}

func at(d time.Duration) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(d)) }
}

var _ = Describe("A team namespace that is deleted with all its contents", func() {
	It("is removed completely", func(ctx SpecContext) {
		t := newTeam(ctx)
		posts := map[v1alpha1.PostPhase]*v1alpha1.Post{
			v1alpha1.PhasePosted:    t.post(ctx, "out"),
			v1alpha1.PhaseDraft:     t.post(ctx, "kept", func(p *v1alpha1.Post) { p.Spec.Draft = true }),
			v1alpha1.PhaseScheduled: t.post(ctx, "later", at(time.Hour)),
			v1alpha1.PhaseCancelled: t.post(ctx, "never", at(time.Hour), func(p *v1alpha1.Post) { p.Spec.Cancelled = true }),
		}
		for want, p := range posts {
			Eventually(phase(ctx, p)).Should(Equal(want))
		}
		// The platform permanently refuses one of these, one waits for a connection, and one may have been published.
		t.fault(ctx, "publish", "status", 1)
		t.post(ctx, "not now")
		t.post(ctx, "to nobody", func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "nobody" })
		t.inDoubt(ctx)
		awaited := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "awaited"}, Spec: v1alpha1.MediaSpec{
			FileName: "a.png", MimeType: v1alpha1.MimePNG, SizeBytes: 10,
		}}
		fetched := awaited.DeepCopy()
		fetched.Name, fetched.Spec.SizeBytes, fetched.Spec.Source = "fetched", 0, &v1alpha1.MediaSource{URL: "https://192.0.2.1/a.png"}
		key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "ci"}}
		usage := &v1alpha1.Usage{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "counted"}, Spec: v1alpha1.UsageSpec{Resource: "x-posts", Period: "2026-11"}}
		grant := &v1alpha1.OAuthGrant{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "agent-abcdefghijklmnop"},
			Spec: v1alpha1.OAuthGrantSpec{
				Client: v1alpha1.OAuthGrantClient{ID: "dcr:1", RedirectHost: "127.0.0.1:1"}, Person: v1alpha1.OAuthGrantPerson{Name: "oidc:ada"},
				Scopes: []v1alpha1.OAuthScope{"read"}, Resource: "https://herald.example/mcp", ExpiresAt: v1alpha1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second)),
			},
		}
		for _, object := range []client.Object{awaited, fetched, key, usage, grant} {
			Expect(admin.Create(ctx, object)).To(Succeed())
		}
		t.ready(ctx, key, &key.Status.Conditions)
		Eventually(func() ([]string, error) {
			err := admin.Get(ctx, client.ObjectKeyFromObject(awaited), awaited)
			return awaited.Finalizers, err
		}).Should(ContainElement(v1alpha1.MediaFileFinalizer), "the finalizers to remove")

		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.name}}
		Expect(admin.Delete(ctx, &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: t.name}})).To(Succeed())
		Expect(admin.Delete(ctx, namespace)).To(Succeed())
		Eventually(gone(ctx, namespace)).Should(BeTrue(), "%+v", namespace.Status.Conditions)

		published := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(published).To(HaveLen(2), "the published and the unknown post, each once")
		Eventually(events(ctx, metav1.NamespaceDefault, v1alpha1.ReasonOutcomeAbandoned)).Should(
			ContainElement(ContainSubstring("check account "+t.account.ID)), "events about the namespace are in the default namespace")
	})
})

var _ = Describe("A single deleted post with an open call", func() {
	It("is removed after its connection, with an event about the unknown outcome", func(ctx SpecContext) {
		t := newTeam(ctx)
		p := t.inDoubt(ctx)
		Expect(admin.Delete(ctx, p)).To(Succeed())
		Consistently(gone(ctx, p), 2*time.Second).Should(BeFalse(), "the outcome can still be looked up")
		Expect(admin.Delete(ctx, &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "x"}})).To(Succeed())
		Eventually(gone(ctx, p)).Should(BeTrue())
		Eventually(events(ctx, t.name, v1alpha1.ReasonOutcomeAbandoned)).Should(ContainElement(ContainSubstring("check account " + t.account.ID)))
		published := suite.Must(platform.Posts(ctx, "x", t.account.ID))
		Expect(published).To(HaveLen(1))
	})
})

var _ = Describe("An object's dependents", func() {
	It("are garbage collected with it", func(ctx SpecContext) {
		t := newTeam(ctx)
		key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "ci"}}
		Expect(admin.Create(ctx, key)).To(Succeed())
		t.ready(ctx, key, &key.Status.Conditions)
		token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: key.Status.Tokens[0].SecretRef.Name}}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(token), token)).To(Succeed())

		// This is the Secret that the manager stores for an upload session.
		p := t.post(ctx, "with an upload", at(time.Hour))
		Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhaseScheduled))
		upload := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: t.name, Name: "herald-uploads-" + string(p.UID),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p, v1alpha1.GroupVersion.WithKind("Post"))},
		}}
		Expect(admin.Create(ctx, upload)).To(Succeed())

		for _, object := range []client.Object{key, p} {
			Expect(admin.Delete(ctx, object)).To(Succeed())
		}
		for _, object := range []client.Object{key, p, token, upload} {
			Eventually(gone(ctx, object)).Should(BeTrue(), "%T %s", object, object.GetName())
		}
	})
})

var _ = Describe("A team budget enforced by a ResourceQuota", func() {
	It("rejects the post beyond it from any client, and accepts one again after a deletion", func(ctx SpecContext) {
		t := newTeam(ctx, func(team *v1alpha1.Team) { team.Spec.Budget = v1alpha1.TeamBudget{Posts: new(int32(2))} })
		counted := func() (string, error) {
			var found corev1.ResourceQuota
			err := admin.Get(ctx, client.ObjectKey{Namespace: t.name, Name: v1alpha1.BudgetQuota}, &found)
			used, hard := found.Status.Used[quota.ResourceNameOf("posts")], found.Status.Hard[quota.ResourceNameOf("posts")]
			return fmt.Sprintf("%s of %s", &used, &hard), err
		}
		Eventually(counted).Should(Equal("0 of 2"), "Kubernetes' controller counts what Herald's bounds")

		draft := func(p *v1alpha1.Post) { p.Spec.Draft = true }
		first := t.post(ctx, "one", draft)
		t.post(ctx, "two", draft)
		third := first.DeepCopy()
		third.ObjectMeta = metav1.ObjectMeta{Namespace: t.name, Name: "three"}
		refused := admin.Create(ctx, third)
		Expect(apierrors.IsForbidden(refused)).To(BeTrue(), "%v", refused)
		Expect(refused).To(MatchError(ContainSubstring("exceeded quota: " + v1alpha1.BudgetQuota)))

		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(gone(ctx, first)).Should(BeTrue())
		third.ResourceVersion = ""
		Eventually(func() error { return admin.Create(ctx, third) }).Should(Succeed())
		Eventually(counted).Should(Equal("2 of 2"))
	})
})

var _ = Describe("The manager's log at level info", func() {
	It("has no startup noise, and no duplicate fields in a line", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.post(ctx, "hello")
		Eventually(manager.Log).Should(ContainSubstring("msg=published "))
		manager.Stop()
		for line := range strings.Lines(manager.Log()) {
			Expect(line).NotTo(Or(ContainSubstring("EventSource"), ContainSubstring("Starting workers"), ContainSubstring("logger=controller-runtime")))
			for _, field := range []string{" namespace=", " name=", " Post=", " Team="} {
				most := 1
				if field == " Post=" || field == " Team=" {
					most = 0
				}
				Expect(strings.Count(line, field)).To(BeNumerically("<=", most), line)
			}
		}
	})
})
