// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	tokens "github.com/herald-social/herald/internal/credentials"
)

// certificate returns the Secret that the manager creates for its webhook, with the edits.
func certificate(edits ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "herald-system", Name: "herald-webhook-certificate"},
		Type:       corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: {}, corev1.TLSPrivateKeyKey: {}},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// ownedBy returns a Secret in the team's namespace that belongs to an object of Herald.
func ownedBy(kind, name string, edits ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ofTeam, Name: name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: "a", UID: "1"}},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"0": []byte("a")},
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// database returns another program's Secret in the team's namespace, account a Secret that a user created with an
// account's tokens, and uploads one that belongs to the manager.
func database() *corev1.Secret {
	return ownedBy("", "database", func(s *corev1.Secret) { s.OwnerReferences, s.Data = nil, map[string][]byte{"password": []byte("a")} })
}

func account() *corev1.Secret {
	return ownedBy("", "acme-x", func(s *corev1.Secret) {
		s.OwnerReferences, s.Labels = nil, map[string]string{"app": "a"}
		s.Data = map[string][]byte{v1alpha1.CredentialsAccessToken: []byte("a"), "note": []byte("ours")}
	})
}

// copied returns the manager's working copy of an account's tokens, with the edits.
func copied(account string, edits ...func(*corev1.Secret)) *corev1.Secret {
	conn := &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: account}}
	s := ownedBy("", tokens.WorkingName(conn), func(s *corev1.Secret) {
		s.OwnerReferences, s.Labels = nil, map[string]string{tokens.WorkingLabel: "x"}
		s.Annotations = map[string]string{tokens.InputAnnotation: "a"}
		s.Type, s.Data = tokens.WorkingType, map[string][]byte{v1alpha1.CredentialsAccessToken: []byte("a"), "note": []byte("ours")}
	})
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func uploads() *corev1.Secret {
	return ownedBy("Post", "herald-uploads-0b7f6a1e-9d34-4c5a-8f7e-1a2b3c4d5e6f")
}

var _ = DescribeTable("With any roles, the manager is restricted by policies: it creates a Secret", func(ctx SpecContext, s *corev1.Secret, words ...string) {
	outcomeIs(powerful.Create(ctx, s, client.DryRunAll), words...)
},
	Entry("with a key's token", ownedBy("APIKey", "ci-token"), nobody),
	Entry("with the state of uploads", ownedBy("Post", "herald-uploads-1"), nobody),
	Entry("with its webhook's certificate", certificate(), nobody),
	Entry("with its working copy of an account's tokens", copied("2"), nobody),
	Entry("with the register of its working copies", copied("2", func(s *corev1.Secret) { s.Namespace, s.Name = misused, tokens.RegisterName }), nobody),
	Entry("of its own type with a name that another program may wait for", copied("2", func(s *corev1.Secret) { s.Name = "database-too" }), policy, "derived from the account"),
	Entry("of its own type with an owner, so that Kubernetes deletes it", copied("2", func(s *corev1.Secret) {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "1"}}
	}), policy, "derived from the account"),
	Entry("of its own type outside team namespaces", copied("2", func(s *corev1.Secret) { s.Namespace = foreign }), policy, "team namespaces"),
	Entry("of its own type in its own namespace", copied("2", func(s *corev1.Secret) { s.Namespace = "herald-system" }), policy, "herald-webhook-certificate"),
	Entry("in kube-system, where it admits nodes", certificate(func(s *corev1.Secret) {
		s.Namespace, s.Name, s.Type, s.Data = "kube-system", "bootstrap-token-abcdef", "bootstrap.kubernetes.io/token", map[string][]byte{
			"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"),
		}
	}), policy, "team namespaces"),
	Entry("in its own namespace, for the apiserver to read", certificate(func(s *corev1.Secret) { s.Name = "herald-web-too" }), policy, "herald-webhook-certificate"),
	Entry("outside team namespaces", ownedBy("Post", "a", func(s *corev1.Secret) { s.Namespace = foreign }), policy, "team namespaces"),
	Entry("of a Helm release, which the next upgrade applies", ownedBy("Post", "sh.helm.release.v1.shop.v2", func(s *corev1.Secret) {
		s.Type = "helm.sh/release.v1"
	}), policy, "of type Opaque"),
	Entry("with a certificate, which an Ingress may wait for", ownedBy("Post", "a", func(s *corev1.Secret) {
		s.Type, s.Data = corev1.SecretTypeTLS, map[string][]byte{corev1.TLSCertKey: {}, corev1.TLSPrivateKeyKey: {}}
	}), policy, "of type Opaque"),
	Entry("without an owner, so it is never deleted", ownedBy("Post", "a", func(s *corev1.Secret) { s.OwnerReferences = nil }), policy, "a Post owns"),
	Entry("owned by an object of another program", ownedBy("Deployment", "a"), policy, "a Post owns"),
)

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: it", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("changes an account's credentials", func(ctx context.Context) error {
		return change(ctx, broken, account(), `{"data":{"accessToken":"Yg=="}}`)
	}, policy, "can only change the data of herald-system/herald-web"),
	Entry("deletes them", func(ctx context.Context) error { return broken.Delete(ctx, account(), client.DryRunAll) }, policy, "cannot delete Secrets"),
)

var _ = DescribeTable("With any roles, the manager is restricted by policies: it", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("renews an account's tokens", func(ctx context.Context) error {
		return change(ctx, powerful, copied("1"), `{"metadata":{"annotations":{"social.herald.dev/renewed-at":"2026-12-01T09:00:00Z"}},"data":{"accessToken":"Yg==","refreshToken":"Yg==","expiresAt":"Yg=="}}`)
	}, nobody),
	Entry("claims a renewal", func(ctx context.Context) error {
		return change(ctx, powerful, copied("1"), `{"metadata":{"annotations":{"social.herald.dev/renewal":"a"}}}`)
	}, nobody),
	Entry("adopts new tokens from a user", func(ctx context.Context) error {
		return change(ctx, powerful, copied("1"), `{"metadata":{"annotations":{"social.herald.dev/input":"b","social.herald.dev/earlier-inputs":"a","social.herald.dev/granted-at":"2026-11-29T09:00:00Z"}},"data":{"accessToken":"Yg==","expiresAt":null,"clientID":"Yg==","clientSecret":"Yg=="}}`)
	}, nobody),
	Entry("registers a working copy", func(ctx context.Context) error {
		return change(ctx, powerful, copied("1", func(s *corev1.Secret) { s.Name = tokens.RegisterName }), `{"data":{"a":"Yg=="}}`)
	}, nobody),
	Entry("deletes a deleted account's tokens", func(ctx context.Context) error { return powerful.Delete(ctx, copied("1"), client.DryRunAll) }, nobody),
	Entry("changes the tokens in a user's Secret", func(ctx context.Context) error {
		return change(ctx, powerful, account(), `{"data":{"accessToken":"Yg=="}}`)
	}, policy, "can only change its working copies"),
	Entry("annotates a user's Secret", func(ctx context.Context) error {
		return change(ctx, powerful, account(), `{"metadata":{"annotations":{"social.herald.dev/renewal":"a"}}}`)
	}, policy, "can only change its working copies"),
	Entry("changes a user's other data in a working copy", func(ctx context.Context) error {
		return change(ctx, powerful, copied("1"), `{"data":{"note":"Yg=="}}`)
	}, policy, "in the data of a working copy"),
	Entry("adds an owner to an account's tokens, so that Kubernetes deletes them", func(ctx context.Context) error {
		return change(ctx, powerful, copied("1"), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1"}]}}`)
	}, policy, "in the metadata of"),
	Entry("records an upload", func(ctx context.Context) error {
		return change(ctx, powerful, uploads(), `{"data":{"0":"Yg==","1":"Yg=="}}`)
	}, nobody),
	Entry("deletes the state of uploads", func(ctx context.Context) error { return powerful.Delete(ctx, uploads(), client.DryRunAll) }, nobody),
	Entry("changes another Secret", func(ctx context.Context) error {
		return change(ctx, powerful, database(), `{"data":{"password":"Yg=="}}`)
	}, policy, "can only change its working copies"),
	Entry("deletes another Secret", func(ctx context.Context) error { return powerful.Delete(ctx, database(), client.DryRunAll) }, policy, "can only delete working copies"),
	Entry("deletes a user's Secret", func(ctx context.Context) error { return powerful.Delete(ctx, account(), client.DryRunAll) }, policy, "can only delete working copies"),
	Entry("adds an owner to another Secret, so that Kubernetes deletes it", func(ctx context.Context) error {
		return change(ctx, powerful, database(), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"1"}]}}`)
	}, policy, "can only change its working copies"),
	Entry("adds a finalizer to another Secret", func(ctx context.Context) error {
		return change(ctx, powerful, database(), `{"metadata":{"finalizers":["example.com/kept"]}}`)
	}, policy, "can only change its working copies"),
	Entry("sets another annotation", func(ctx context.Context) error {
		return change(ctx, powerful, database(), `{"metadata":{"annotations":{"note":"a"}}}`)
	}, policy, "can only change its working copies"),
)
