// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// acme is the suite's Team; richer is a patch that gives it the largest plan.
func acme() *v1alpha1.Team {
	return &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TeamSpec{
		Namespace: ofTeam, Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter},
	}}
}

const richer = `{"spec":{"subscription":{"plan":"unlimited"}}}`

// everyRight returns a binding to cluster-admin, as an attacker would create it.
func everyRight() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "herald-system", Name: "herald-manager"}},
	}
}

// Attacks with the code and the token of one of Herald's processes. The tables in this folder test
// each step separately, with every role; these tests cover the roles and the policies together.
var _ = DescribeTable("An attacker with either process", func(ctx SpecContext, attempt func(context.Context, client.Client) error, words ...string) {
	for _, who := range []client.Client{manager, apiserver} {
		outcomeIs(attempt(ctx, who), words...)
	}
},
	Entry("binds cluster-admin", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, everyRight(), client.DryRunAll)
	}, roles),
	Entry("extends one of Herald's roles", func(ctx context.Context, who client.Client) error {
		return change(ctx, who, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "herald-manager"}}, `{"rules":[]}`)
	}, roles),
	Entry("removes a policy", func(ctx context.Context, who client.Client) error {
		return who.Delete(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "herald-manager-role-bindings"}}, client.DryRunAll)
	}, roles),
	Entry("changes a policy", func(ctx context.Context, who client.Client) error {
		return change(ctx, who, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "herald-manager-role-bindings"}}, `{"spec":{"failurePolicy":"Ignore"}}`)
	}, roles),
	Entry("requests another service account's token", func(ctx context.Context, who client.Client) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "clusterrole-aggregation-controller"}}
		return who.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
	}, roles),
	Entry("requests another user's certificate", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "mine"},
			Spec:       certificatesv1.CertificateSigningRequestSpec{Request: []byte("a"), SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}},
		}, client.DryRunAll)
	}, roles),
	Entry("starts a pod under another service account", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "mine"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
		}, client.DryRunAll)
	}, roles),
	Entry("reads one of Kubernetes' Secrets", func(ctx context.Context, who client.Client) error {
		return who.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "crown"}, &corev1.Secret{})
	}, roles),
	Entry("reads another application's Secret", func(ctx context.Context, who client.Client) error {
		return who.Get(ctx, client.ObjectKey{Namespace: foreign, Name: "database"}, &corev1.Secret{})
	}, roles),
	Entry("lists a team's Secrets", func(ctx context.Context, who client.Client) error {
		return who.List(ctx, &corev1.SecretList{}, client.InNamespace(ofTeam))
	}, roles),
	Entry("assigns kube-system to a team", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: v1alpha1.TeamSpec{Namespace: "kube-system"}}, client.DryRunAll)
	}, roles),
	Entry("labels kube-system as a team's namespace", func(ctx context.Context, who client.Client) error {
		return change(ctx, who, namespace("kube-system", ""), `{"metadata":{"labels":{"social.herald.dev/team":"mine"}}}`)
	}, roles),
	Entry("deletes all of a team's posts", func(ctx context.Context, who client.Client) error {
		return who.DeleteAllOf(ctx, &v1alpha1.Post{}, client.InNamespace(ofTeam), client.DryRunAll)
	}, roles),
	Entry("adds an owner to a post, so that Kubernetes deletes it", func(ctx context.Context, who client.Client) error {
		return change(ctx, who, draft(), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"a","uid":"1"}]}}`)
	}, policy),
	Entry("deletes a key", func(ctx context.Context, who client.Client) error { return who.Delete(ctx, key(), client.DryRunAll) }, roles),
	Entry("redirects an aggregated API of the API server", func(ctx context.Context, who client.Client) error {
		return who.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, client.DryRunAll)
	}, roles),
)

var _ = DescribeTable("An attacker with the manager", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("plants a key", func(ctx context.Context) error { return manager.Create(ctx, keyOf(newKey, "ada"), client.DryRunAll) }, roles),
	Entry("plants a token in a key", func(ctx context.Context) error { return change(ctx, manager, key(), planted) }, roles),
	Entry("creates an agent's grant", func(ctx context.Context) error { return manager.Create(ctx, grant(ofTeam), client.DryRunAll) }, roles),
	Entry("writes a post in a team's name", func(ctx context.Context) error { return manager.Create(ctx, sent(ofTeam), client.DryRunAll) }, policy),
	Entry("changes a team's plan", func(ctx context.Context) error { return change(ctx, manager, acme(), richer) }, policy),
	Entry("adds a finalizer to a team", func(ctx context.Context) error {
		return change(ctx, manager, acme(), `{"metadata":{"finalizers":["example.com/kept"]}}`)
	}, policy),
	Entry("deletes a post", func(ctx context.Context) error { return manager.Delete(ctx, draft(), client.DryRunAll) }, policy),
	Entry("publishes a draft", func(ctx context.Context) error { return change(ctx, manager, draft(), `{"spec":{"draft":null}}`) }, policy),
	Entry("reads the session keys", func(ctx context.Context) error { return manager.Get(ctx, client.ObjectKeyFromObject(web()), web()) }, roles),
)

var _ = DescribeTable("An attacker with the apiserver", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("reads an account's tokens", func(ctx context.Context) error {
		return apiserver.Get(ctx, client.ObjectKeyFromObject(account()), &corev1.Secret{})
	}, roles),
	Entry("reads the webhook's configuration", func(ctx context.Context) error {
		return apiserver.Get(ctx, client.ObjectKey{Name: "herald"}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	}, roles),
	Entry("plants a token in an applied key", func(ctx context.Context) error {
		return change(ctx, apiserver, key(), `{`+signature+`,`+planted[1:])
	}, policy),
	Entry("changes a team's plan", func(ctx context.Context) error { return change(ctx, apiserver, acme(), richer) }, roles),
	Entry("deletes a post", func(ctx context.Context) error { return apiserver.Delete(ctx, draft(), client.DryRunAll) }, roles),
	Entry("publishes a draft without a last author", func(ctx context.Context) error { return change(ctx, apiserver, draft(), `{"spec":{"draft":null}}`) }, policy),
)

// The processes need these permissions for their work; SECURITY.md lists them.
var _ = Describe("The remaining access of an attacker with a process", func() {
	It("is writing what users and API keys may write, as any user, with an identifying label", func(ctx SpecContext) {
		for _, planted := range []client.Object{sent(ofTeam), keyOf(newKey, "grace"), connected(ofTeam), grant(ofTeam, func(g *v1alpha1.OAuthGrant) {
			g.Name, g.Spec.Person.Name, g.Annotations = "agent-qrstuvwxyz234567", "oidc:grace", map[string]string{v1alpha1.AuthorAnnotation: "oidc:grace"}
		})} {
			Expect(apiserver.Create(ctx, planted, client.DryRunAll)).To(Succeed())
			Expect(planted.GetLabels()).To(HaveKey(v1alpha1.OriginLabel))
		}
	})

	It("includes, with the manager, reading teams' Secrets with known names", func(ctx SpecContext) {
		Expect(client.IgnoreAlreadyExists(manager.Create(ctx, binding(ofTeam)))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, binding(ofTeam)))).To(Succeed()) })
		Eventually(func() error { return manager.Get(ctx, client.ObjectKeyFromObject(database()), &corev1.Secret{}) }).Should(Succeed())
	})

	// The API server does not apply policies to policies and webhooks, since otherwise a broken one could never be
	// removed.
	It("includes, with the manager, directing other objects to Herald's webhook, if the manager maintains it", func(ctx SpecContext) {
		webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "herald"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "posts.social.herald.dev", SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")}, FailurePolicy: new(admissionregistrationv1.Ignore),
			}},
		}
		Expect(admin.Create(ctx, webhook)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, webhook)).To(Succeed()) })
		rules := `[{"op":"add","path":"/webhooks/0/rules","value":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["secrets"]}]}]`
		Expect(manager.Patch(ctx, webhook, client.RawPatch(types.JSONPatchType, []byte(rules)), client.DryRunAll)).To(Succeed())
	})
})
