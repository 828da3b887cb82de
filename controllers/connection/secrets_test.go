// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
)

// The apiserver records each Secret of a connection before it creates the Secret.
var _ = Describe("Secrets created by the apiserver", func() {
	const old, young = time.Hour, time.Minute

	// made creates a Secret of a connection and records it.
	made := func(ctx context.Context, a *account, name string, age time.Duration, owned bool) *corev1.Secret {
		GinkgoHelper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: managed, Name: name}, StringData: tokensOf(a.Account)}
		if owned {
			Expect(controllerutil.SetControllerReference(a.conn, secret, k8s.Scheme())).To(Succeed())
		}
		Expect(k8s.Create(ctx, secret)).To(Succeed())
		base := a.read(ctx).DeepCopy()
		if a.conn.Annotations == nil {
			a.conn.Annotations = map[string]string{}
		}
		a.conn.Annotations[v1alpha1.MadeSecretPrefix+name] = time.Now().Add(-age).UTC().Format(time.RFC3339)
		Expect(k8s.Patch(ctx, a.conn, client.MergeFrom(base))).To(Succeed())
		return secret
	}
	gone := func(ctx context.Context, secret *corev1.Secret) func() bool {
		return func() bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}))
		}
	}

	It("are deleted when they are unused", func(ctx SpecContext) {
		a := connected(ctx, managed)
		name := a.conn.Name
		unused := made(ctx, a, name+"-unused", old, true)
		coming := made(ctx, a, name+"-coming", young, true)
		foreign := made(ctx, a, name+"-foreign", old, false)
		used := made(ctx, a, name+"-used", old, true)

		base := a.read(ctx).DeepCopy()
		a.conn.Spec.CredentialsSecretRef.Name = used.Name
		Expect(k8s.Patch(ctx, a.conn, client.MergeFrom(base))).To(Succeed())

		Eventually(gone(ctx, unused)).Should(BeTrue(), "an apiserver that stopped early left it behind")
		Eventually(func() map[string]string { return a.read(ctx).Annotations }).ShouldNot(HaveKey(v1alpha1.MadeSecretPrefix+unused.Name), "the annotation is removed")
		Expect(gone(ctx, coming)()).To(BeFalse(), "the apiserver may be about to switch to it")
		Expect(gone(ctx, foreign)()).To(BeFalse(), "an annotation may name any Secret; only the connection's Secrets are deleted")
		Expect(gone(ctx, used)()).To(BeFalse(), "the Secret contains the token in use")
		Expect(gone(ctx, a.secret)()).To(BeFalse(), "a user created the Secret")
		Expect(a.read(ctx).Annotations).To(And(HaveKey(v1alpha1.MadeSecretPrefix+coming.Name), HaveKey(v1alpha1.MadeSecretPrefix+used.Name)))
	})

	It("remain until the new ones are confirmed", func(ctx SpecContext) {
		a := connected(ctx, managed)
		before := made(ctx, a, a.conn.Name+"-before", old, true)
		base := a.read(ctx).DeepCopy()
		a.conn.Spec.CredentialsSecretRef.Name = a.conn.Name + "-missing"
		Expect(k8s.Patch(ctx, a.conn, client.MergeFrom(base))).To(Succeed())
		Eventually(a.state(ctx)).Should(Equal("False CredentialsNotFound"))
		Expect(gone(ctx, before)()).To(BeFalse())
	})
})
