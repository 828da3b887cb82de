// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/test/sandboxtest"
)

// renamed creates a connection to the account under another name, with its own tokens.
func (a *account) renamed(ctx context.Context, tokens map[string]string) *account {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: a.conn.Namespace, Name: a.conn.Name + "-renamed"}
	b := &account{
		Account: a.Account, conn: &v1alpha1.Connection{ObjectMeta: meta, Spec: a.conn.Spec},
		secret: &corev1.Secret{ObjectMeta: meta, StringData: tokens},
	}
	b.conn.Spec.CredentialsSecretRef.Name = meta.Name
	b.create(ctx)
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // the context of the spec has ended by then
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, b.conn))).To(Succeed())
	})
	return b
}

// ended replaces the access token with one that the platform no longer accepts.
func ended(tokens map[string]string) map[string]string {
	tokens[v1alpha1.CredentialsAccessToken] = "ended-long-ago"
	return tokens
}

var _ = Describe("The working copy that a deleted connection has left", func() {
	var (
		r     *connection.Reconciler
		a     *account
		inUse string
	)
	BeforeEach(func(ctx SpecContext) {
		r = newManager("one", k8s, platform)
		a = newAccount(ctx, byHand, nil).create(ctx)
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
		a.rotate(ctx, r)
		inUse = a.inUse(ctx)
		Expect(k8s.Delete(ctx, a.conn)).To(Succeed())
	})

	DescribeTable("is not touched by a connection of another name whose tokens have not proved good",
		func(ctx SpecContext, tokens func() map[string]string, reason string) {
			refreshed := calls(ctx, "refresh_token")
			b := a.renamed(ctx, tokens())
			Expect(b.examined(ctx, r)).To(Equal(reason))
			Expect(a.inUse(ctx)).To(Equal(inUse))
			Expect(calls(ctx, "refresh_token")).To(Equal(refreshed), "no refresh token is spent to find out")
			Expect(b.read(ctx).Status.CredentialsVersion).To(BeEmpty(), "what the copy holds is not this connection's")

			By("having the connection come back")
			a.again(ctx)
			Expect(a.examined(ctx, r)).To(Equal("Connected"))
			Expect(a.inUse(ctx)).To(Equal(inUse))
		},
		Entry("a token that somebody guessed", func() map[string]string {
			return map[string]string{v1alpha1.CredentialsAccessToken: "guessed"}
		}, "TokenExpired"),
		Entry("tokens from Git, which were spent long ago", func() map[string]string { return ended(map[string]string{"refreshToken": "spent"}) }, "TokenExpired"),
		Entry("none at all", func() map[string]string { return map[string]string{"token": "x"} }, "CredentialsInvalid"),
	)

	It("says what a connection of another name can do whose refresh token is not tried", func(ctx SpecContext) {
		b := a.renamed(ctx, ended(tokensOf(a.grant(ctx))))
		Expect(b.examined(ctx, r)).To(Equal("TokenExpired"))
		told := b.condition(ctx, v1alpha1.ConditionReady)
		Expect(told).To(And(ContainSubstring("still work"), ContainSubstring(a.working(ctx).Name), ContainSubstring("delete")))
		Expect(b.examined(ctx, r)).To(Equal("TokenExpired"))
		Expect(b.condition(ctx, v1alpha1.ConditionReady)).To(Equal(told), "a message that changes is a write")

		By("deleting the copy, as it says")
		Expect(k8s.Delete(ctx, a.working(ctx))).To(Succeed())
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
	})

	It("waits for a platform that does not say whose the new tokens are, and is replaced once it does", func(ctx SpecContext) {
		fresh := a.grant(ctx)
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "status", Status: 503, Times: 1})
		b := a.renamed(ctx, tokensOf(fresh))
		Expect(b.examined(ctx, r)).To(Equal("PlatformUnavailable"))
		Expect(a.inUse(ctx)).To(Equal(inUse))
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.inUse(ctx)).To(Equal(fresh.AccessToken))
	})

	It("is replaced when its own tokens are refused, and the new refresh token is the last that can be tried", func(ctx SpecContext) {
		fresh := a.grant(ctx)
		b := a.renamed(ctx, ended(tokensOf(fresh)))
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_revoked", Times: 1})
		a.fault(ctx, sandboxtest.Fault{Operation: "refresh_token", Kind: "token_revoked", Times: 1})
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.inUse(ctx)).NotTo(BeElementOf(inUse, fresh.AccessToken, "ended-long-ago"))
	})
})

var _ = Describe("A Secret of people that has the name of Herald's register", func() {
	It("is left as it is, and its Connection says what to do", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "named-"}}
		Expect(k8s.Create(ctx, namespace)).To(Succeed())
		a := newAccount(ctx, namespace.Name, nil)
		a.secret.Name, a.conn.Spec.CredentialsSecretRef.Name = credentials.RegisterName, credentials.RegisterName
		a.create(ctx)
		given, r := a.stored(ctx), newManager("one", k8s, platform)
		Expect(a.examined(ctx, r)).To(Equal("CredentialsInvalid"))
		Expect(a.condition(ctx, v1alpha1.ConditionReady)).To(ContainSubstring("give it another name"))
		Expect(a.stored(ctx)).To(Equal(given))
		Expect(copyOf(ctx, a)()).To(BeFalse())

		By("giving it another name")
		Expect(k8s.Delete(ctx, given)).To(Succeed())
		Expect(k8s.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "acme"}, StringData: tokensOf(a.Account)})).To(Succeed())
		base := a.read(ctx).DeepCopy()
		a.conn.Spec.CredentialsSecretRef.Name = "acme"
		Expect(k8s.Patch(ctx, a.conn, client.MergeFrom(base))).To(Succeed())
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
	})
})
