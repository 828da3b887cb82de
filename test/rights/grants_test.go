// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// grant returns the grant that the apiserver stores after a user has consented, with the given edits.
func grant(namespace string, edits ...func(*v1alpha1.OAuthGrant)) *v1alpha1.OAuthGrant {
	g := &v1alpha1.OAuthGrant{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "agent-abcdefghijklmnop",
			Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb}, Annotations: map[string]string{v1alpha1.AuthorAnnotation: "oidc:ada"},
		},
		Spec: v1alpha1.OAuthGrantSpec{
			Client: v1alpha1.OAuthGrantClient{ID: "dcr:1", RedirectHost: "127.0.0.1:1"}, Person: v1alpha1.OAuthGrantPerson{Name: "oidc:ada"},
			Scopes: []v1alpha1.OAuthScope{"read"}, Resource: "https://herald.example/mcp", ExpiresAt: v1alpha1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)),
		},
	}
	for _, edit := range edits {
		edit(g)
	}
	return g
}

// used marks a grant as redeemed, so its agent has tokens; over also revokes it.
func used(g *v1alpha1.OAuthGrant) {
	at := v1alpha1.NewTime(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	g.Name, g.Status.RedeemedAt = "agent-usedusedusedused", &at
}

func over(g *v1alpha1.OAuthGrant) {
	used(g)
	g.Name, g.Status.RevokedAt, g.Status.RevokedReason = "agent-overoveroverover", g.Status.RedeemedAt, v1alpha1.GrantReuse
}

// asPerson acts as a user who is named after a role and has that role in the team's namespace, along with any
// additional roles.
func asPerson(ctx context.Context, role string, more ...string) client.Client {
	GinkgoHelper()
	person := "person-" + role
	for _, role := range append([]string{role}, more...) {
		b := credentials(ofTeam)
		b.Name, b.RoleRef.Name = person+"-"+role, role
		b.Subjects[0].Kind, b.Subjects[0].APIGroup, b.Subjects[0].Namespace, b.Subjects[0].Name = "User", "rbac.authorization.k8s.io", "", person
		Expect(client.IgnoreAlreadyExists(admin.Create(ctx, b))).To(Succeed())
	}
	config := rest.CopyConfig(adminConfig)
	config.Impersonate, config.QPS = rest.ImpersonationConfig{UserName: person}, -1
	c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

var _ = Describe("The users' grants to agents", Ordered, func() {
	stored := grant(ofTeam)

	BeforeAll(func(ctx SpecContext) {
		Eventually(func() error { return broken.Create(ctx, grant(foreign), client.DryRunAll) }).Should(MatchError(ContainSubstring("herald-apiserver-grants")))
		Expect(admin.Create(ctx, stored)).To(Succeed())
		for _, g := range []*v1alpha1.OAuthGrant{grant(ofTeam, used), grant(ofTeam, over), grant(foreign, over)} {
			status := g.Status
			Expect(admin.Create(ctx, g)).To(Succeed())
			g.Status = status
			Expect(admin.Status().Update(ctx, g)).To(Succeed())
		}
	})

	DescribeTable("the apiserver", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
		outcomeIs(attempt(ctx), words...)
	},
		Entry("creates one in a team's namespace", func(ctx context.Context) error {
			return apiserver.Create(ctx, grant(ofTeam, func(g *v1alpha1.OAuthGrant) { g.Name = "agent-qrstuvwxyz234567" }), client.DryRunAll)
		}, nobody),
		Entry("creates one outside team namespaces", func(ctx context.Context) error { return apiserver.Create(ctx, grant(foreign), client.DryRunAll) }, policy, "team namespaces"),
		Entry("creates one in Herald's own namespace", func(ctx context.Context) error {
			return apiserver.Create(ctx, grant("herald-system"), client.DryRunAll)
		}, policy, "team namespaces"),
		Entry("creates one without its label", func(ctx context.Context) error {
			return apiserver.Create(ctx, grant(ofTeam, func(g *v1alpha1.OAuthGrant) { g.Labels = nil }), client.DryRunAll)
		}, policy, "for a user named in"),
		Entry("creates one in another user's name", func(ctx context.Context) error {
			return apiserver.Create(ctx, grant(ofTeam, func(g *v1alpha1.OAuthGrant) { g.Spec.Person.Name = "oidc:admin" }), client.DryRunAll)
		}, policy, "for a user named in"),
		Entry("creates one with a name that it does not generate", func(ctx context.Context) error {
			return apiserver.Create(ctx, grant(ofTeam, func(g *v1alpha1.OAuthGrant) { g.Name = "launch" }), client.DryRunAll)
		}, policy, "a generated name"),
		Entry("revokes one for a user", func(ctx context.Context) error {
			return patchGrant(ctx, apiserver, `{`+signature+`,"spec":{"revoked":true}}`)
		}, nobody),
		Entry("revokes one without a last author", func(ctx context.Context) error {
			return patchGrant(ctx, apiserver, `{"spec":{"revoked":true}}`)
		}, policy, "for a user named in"),
		Entry("adds an owner, so that Kubernetes deletes it", func(ctx context.Context) error {
			return patchGrant(ctx, apiserver, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"a","uid":"1"}]}}`)
		}, policy, "owners or finalizers"),
		Entry("creates one that cannot be deleted", func(ctx context.Context) error {
			return apiserver.Create(ctx, grant(ofTeam, func(g *v1alpha1.OAuthGrant) {
				g.Name, g.Finalizers = "agent-qrstuvwxyz234567", []string{"example.com/kept"}
			}), client.DryRunAll)
		}, policy, "owners or finalizers"),
		Entry("writes the status", func(ctx context.Context) error {
			return apiserver.Status().Patch(ctx, grant(ofTeam), client.RawPatch(types.MergePatchType, []byte(`{"status":{"redeemedAt":"2026-12-01T09:00:00Z"}}`)), client.DryRunAll)
		}, nobody),
		Entry("deletes one whose code was never exchanged", func(ctx context.Context) error { return apiserver.Delete(ctx, grant(ofTeam), client.DryRunAll) }, nobody),
		Entry("deletes one that has expired according to its status", func(ctx context.Context) error {
			return apiserver.Delete(ctx, grant(ofTeam, over), client.DryRunAll)
		}, nobody),
		Entry("deletes one that an agent uses", func(ctx context.Context) error {
			return broken.Delete(ctx, grant(ofTeam, used), client.DryRunAll)
		}, policy, "can only delete OAuthGrants that have status.revokedAt"),
		Entry("deletes one outside team namespaces", func(ctx context.Context) error {
			return broken.Delete(ctx, grant(foreign, over), client.DryRunAll)
		}, policy, "team namespaces"),
		Entry("removes its label", func(ctx context.Context) error {
			return patchGrant(ctx, apiserver, `{"metadata":{"labels":{"social.herald.dev/origin":null}}}`)
		}, policy, "cannot change the label"),
		Entry("changes its author", func(ctx context.Context) error {
			return patchGrant(ctx, apiserver, `{"metadata":{"annotations":{"social.herald.dev/author":"oidc:admin"}}}`)
		}, policy, "or the annotation"),
	)

	It("can be revoked by the apiserver even without labels and annotations", func(ctx SpecContext) {
		g := grant(ofTeam, func(g *v1alpha1.OAuthGrant) { g.Name = "agent-namelessnameless" })
		g.Labels, g.Annotations = nil, nil
		Expect(admin.Create(ctx, g)).To(Succeed())
		at := v1alpha1.NewTime(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
		ended := g.DeepCopy()
		ended.Status = v1alpha1.OAuthGrantStatus{RedeemedAt: &at, RevokedAt: &at, RevokedReason: v1alpha1.GrantReuse}
		Expect(apiserver.Status().Update(ctx, ended, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}})).To(Succeed())
		revoke := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"social.herald.dev/last-author":"oidc:ada"}},"spec":{"revoked":true}}`))
		Expect(apiserver.Patch(ctx, g, revoke, client.DryRunAll)).To(Succeed())
	})

	DescribeTable("no user can change the granted permissions", func(ctx SpecContext, patch, words string) {
		for _, who := range []client.Client{admin, apiserver} {
			Expect(patchGrant(ctx, who, patch)).To(MatchError(ContainSubstring(words)))
		}
	},
		Entry("the scopes", `{"spec":{"scopes":["read","draft","publish"]}}`, "cannot be changed"),
		Entry("the user", `{"metadata":{"annotations":{"social.herald.dev/author":"oidc:admin"}},"spec":{"person":{"name":"oidc:admin"}}}`, "cannot be changed"),
		Entry("the groups", `{"spec":{"person":{"groups":["oidc:admins"]}}}`, "cannot be changed"),
		Entry("the agent", `{"spec":{"client":{"id":"dcr:2"}}}`, "cannot be changed"),
		Entry("the resource", `{"spec":{"resource":"https://evil.example/mcp"}}`, "cannot be changed"),
		Entry("the expiry", `{"spec":{"expiresAt":"2900-01-01T00:00:00Z"}}`, "cannot be changed"),
	)

	It("remain revoked, and a code remains used", func(ctx SpecContext) {
		g := grant(ofTeam, func(g *v1alpha1.OAuthGrant) { g.Name = "agent-revokedrevokedr" })
		Expect(admin.Create(ctx, g)).To(Succeed())
		at := v1alpha1.NewTime(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
		g.Status = v1alpha1.OAuthGrantStatus{RedeemedAt: &at, RevokedAt: &at, RevokedReason: v1alpha1.GrantReuse}
		Expect(admin.Status().Update(ctx, g)).To(Succeed())
		g.Spec.Revoked = true
		Expect(admin.Update(ctx, g)).To(Succeed())
		for _, undo := range []func() error{
			func() error { g.Spec.Revoked = false; return admin.Update(ctx, g) },
			func() error { g.Status.RevokedAt = nil; return admin.Status().Update(ctx, g) },
			func() error { g.Status.RevokedAt, g.Status.RedeemedAt = &at, nil; return admin.Status().Update(ctx, g) },
			func() error { g.Status = v1alpha1.OAuthGrantStatus{}; return admin.Status().Update(ctx, g) },
			func() error {
				g.Status = v1alpha1.OAuthGrantStatus{LastUsedAt: &at}
				return admin.Status().Update(ctx, g)
			},
			func() error {
				return admin.Status().Patch(ctx, g, client.RawPatch(types.MergePatchType, []byte(`{"status":null}`)))
			},
		} {
			Expect(undo()).To(MatchError(Or(ContainSubstring("stays revoked"), ContainSubstring("used only once"))))
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(g), g)).To(Succeed())
		}
	})

	DescribeTable("users", func(ctx SpecContext, role string, looks, ends bool) {
		person := asPerson(ctx, role)
		allowed := func(may bool) string {
			if may {
				return nobody
			}
			return roles
		}
		Eventually(func() error { return person.List(ctx, &v1alpha1.PostList{}, client.InNamespace(ofTeam)) }).Should(Succeed())
		outcomeIs(person.List(ctx, &v1alpha1.OAuthGrantList{}, client.InNamespace(ofTeam)), allowed(looks))
		outcomeIs(patchGrant(ctx, person, `{"spec":{"revoked":true}}`), allowed(ends))
		outcomeIs(person.Delete(ctx, grant(ofTeam), client.DryRunAll), allowed(ends))
		outcomeIs(person.Create(ctx, grant(ofTeam), client.DryRunAll), roles)
		outcomeIs(person.Status().Patch(ctx, grant(ofTeam), client.RawPatch(types.MergePatchType, []byte(`{"status":{"lastUsedAt":"2026-12-01T09:00:00Z"}}`)), client.DryRunAll), roles)
	},
		Entry("with the viewer role see their own, only in the web application", "herald-viewer", false, false),
		Entry("with the editor role see all", "herald-editor", true, false),
		Entry("with the admin role revoke any grant, but cannot forge one", "herald-admin", true, true),
	)
})

func patchGrant(ctx context.Context, who client.Client, patch string) error {
	return who.Patch(ctx, grant(ofTeam), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
}
