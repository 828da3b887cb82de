// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// ofReceiver is a Secret's name as the apiserver generates it for a notifier.
var ofReceiver = "notifier-" + strings.Repeat("a", 16) + "-" + strings.Repeat("b", 10)

// reporting returns a notifier that the apiserver creates, with the edits.
func reporting(edits ...func(*v1alpha1.Notifier)) *v1alpha1.Notifier {
	n := &v1alpha1.Notifier{
		ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: "failures"},
		Spec: v1alpha1.NotifierSpec{
			Format: v1alpha1.FormatStandardWebhooks, URL: "https://hooks.example.com/herald", SecretRef: &v1alpha1.LocalReference{Name: ofReceiver},
			Events: []v1alpha1.NotifierEvent{v1alpha1.EventPostFailed},
		},
	}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func forAda(n *v1alpha1.Notifier) {
	n.Annotations = map[string]string{v1alpha1.LastAuthorAnnotation: "ada", v1alpha1.SecretsMadeAnnotation: "1"}
}

func using(secret string) func(*v1alpha1.Notifier) {
	return func(n *v1alpha1.Notifier) { n.Spec.SecretRef = &v1alpha1.LocalReference{Name: secret} }
}

// signing returns the Secret that the apiserver creates for a notifier, with the edits.
func signing(edits ...func(*corev1.Secret)) *corev1.Secret {
	s := ofAccount(ofTeam, func(s *corev1.Secret) {
		s.Name, s.OwnerReferences[0].Kind, s.Data = ofReceiver, "Notifier", map[string][]byte{v1alpha1.NotifierSecretKey: []byte("whsec_")}
	})
	for _, edit := range edits {
		edit(s)
	}
	return s
}

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: it creates the Secret of a notifier", func(ctx SpecContext, s *corev1.Secret, words ...string) {
	outcomeIs(broken.Create(ctx, s, client.DryRunAll), words...)
},
	Entry("as the apiserver creates it", signing(), nobody),
	Entry("with an address", signing(func(s *corev1.Secret) { s.Data = map[string][]byte{v1alpha1.NotifierURLKey: []byte("a")} }), nobody),
	Entry("with an account's tokens, which the manager would use", signing(func(s *corev1.Secret) {
		s.Data = map[string][]byte{v1alpha1.CredentialsAccessToken: []byte("a")}
	}), policy, "only store the keys secret and url"),
	Entry("that belongs to a connection, which would be deleted with it", signing(func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "Connection" }), policy, "as their owner"),
	Entry("with the name of an account's", signing(func(s *corev1.Secret) { s.Name = ofMade + strings.Repeat("b", 10) }), policy, "as their owner"),
	Entry("with a second owner, which keeps it when the notifier is deleted", signing(func(s *corev1.Secret) {
		s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Connection", Name: "x", UID: "1"})
	}), policy, "as their owner"),
	Entry("with a name that another program waits for", signing(func(s *corev1.Secret) { s.Name = "database" }), policy, "a generated name"),
	Entry("with a name that begins like it", signing(func(s *corev1.Secret) { s.Name = "notifier-database" }), policy, "a generated name"),
	Entry("that Kubernetes fills with a token", signing(func(s *corev1.Secret) {
		s.Type, s.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
	}), policy, "of type Opaque"),
	Entry("outside team namespaces", signing(func(s *corev1.Secret) { s.Namespace = foreign }), policy, "team namespaces"),
)

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: it writes a Notifier", func(ctx SpecContext, n *v1alpha1.Notifier, words ...string) {
	outcomeIs(broken.Create(ctx, n, client.DryRunAll), words...)
},
	Entry("for a user", reporting(forAda), nobody),
	Entry("without an author", reporting(), policy, "named in the annotation"),
	Entry("outside team namespaces", reporting(forAda, func(n *v1alpha1.Notifier) { n.Namespace = foreign }), policy, "in team namespaces"),
	Entry("that signs with another program's Secret", reporting(forAda, using("database")), policy, "a Secret with a generated name"),
	Entry("that uses an account's Secret", reporting(forAda, using(ofMade+strings.Repeat("b", 10))), policy, "a Secret with a generated name"),
	Entry("that takes its address from a key's Secret", reporting(forAda, using("ci-token"), func(n *v1alpha1.Notifier) {
		n.Spec.Format, n.Spec.URL = v1alpha1.FormatSlack, ""
	}), policy, "a Secret with a generated name"),
	Entry("with an owner, so that Kubernetes deletes it", reporting(forAda, func(n *v1alpha1.Notifier) {
		n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "1"}}
	}), policy, "without labels, finalizers and owners"),
	Entry("that resends at once", reporting(forAda, func(n *v1alpha1.Notifier) { n.Annotations[v1alpha1.ResendAnnotation] = "a" }), policy, "no annotations but"),
)

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: in an applied Notifier it", func(ctx SpecContext, patch string, words ...string) {
	applied := reporting(using("ours"))
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, applied))).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, applied))).To(Succeed()) })
	outcomeIs(change(ctx, broken, applied, patch), words...)
},
	Entry("changes the address, for a user", `{`+signature+`,"spec":{"url":"https://hooks.example.com/other"}}`, nobody),
	Entry("requests a notification again, for a user", `{"metadata":{"annotations":{"social.herald.dev/last-author":"ada","social.herald.dev/resend":"msg_1"}}}`, nobody),
	Entry("uses a Secret that it created", `{`+signature+`,"spec":{"secretRef":{"name":"`+ofReceiver+`"}}}`, nobody),
	Entry("uses another Secret of the team", `{`+signature+`,"spec":{"secretRef":{"name":"database"}}}`, policy, "a Secret with a generated name"),
	Entry("changes it without a last author", `{"spec":{"url":"https://hooks.example.com/other"}}`, policy, "named in the annotation"),
	Entry("labels it, so that a GitOps tool prunes it", `{`+strings.TrimSuffix(signature, "}")+`,"labels":{"app":"other"}}}`, policy, "in the metadata of"),
)

var _ = Describe("The apiserver's roles", func() {
	It("allow no access to Secrets of a team but their creation", func(ctx SpecContext) {
		Expect(client.IgnoreAlreadyExists(manager.Create(ctx, credentials(ofTeam)))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, credentials(ofTeam)))).To(Succeed())
		})
		Eventually(func() error { return apiserver.Create(ctx, signing(), client.DryRunAll) }).Should(Succeed())
		for name, attempt := range map[string]func(context.Context) error{
			"read": func(ctx context.Context) error {
				return apiserver.Get(ctx, client.ObjectKeyFromObject(database()), &corev1.Secret{})
			},
			"list": func(ctx context.Context) error {
				return apiserver.List(ctx, &corev1.SecretList{}, client.InNamespace(ofTeam))
			},
			"change": func(ctx context.Context) error {
				return change(ctx, apiserver, database(), `{"data":{"password":"Yg=="}}`)
			},
			"replace": func(ctx context.Context) error { return apiserver.Update(ctx, database(), client.DryRunAll) },
			"delete":  func(ctx context.Context) error { return apiserver.Delete(ctx, database(), client.DryRunAll) },
			"create again": func(ctx context.Context) error {
				return apiserver.Create(ctx, signing(func(s *corev1.Secret) { s.Name = database().Name }), client.DryRunAll)
			},
		} {
			Expect(apierrors.IsForbidden(attempt(ctx))).To(BeTrue(), name)
		}
	})

	It("do not change the permissions of an APIKey", func(ctx SpecContext) {
		mine := keyOf("k-ada", "ada")
		outcomeIs(change(ctx, broken, mine, `{`+signature+`,"spec":{"permissions":["notifiers"]}}`), policy, "cannot change the permissions")
		outcomeIs(change(ctx, broken, mine, `{`+signature+`,"spec":{"revoked":true}}`), nobody)
	})
})
