// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// copyOf reports whether the account has a working copy.
func copyOf(ctx context.Context, a *account) func() bool {
	return func() bool {
		err := k8s.Get(ctx, client.ObjectKey{Namespace: a.conn.Namespace, Name: credentials.WorkingName(a.conn)}, &corev1.Secret{})
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return err == nil
	}
}

var _ = Describe("The tokens of an account without a connection", func() {
	// swept runs the sweep in a process that has not seen the deletion.
	swept := func(now time.Time) *connection.Reconciler {
		GinkgoHelper()
		c := clocktesting.NewFakeClock(now)
		return suite.Must(connection.New(connection.Options{
			Client: k8s, APIReader: k8s, Clock: c, Owned: envtest.EveryNamespace,
			Platforms: platforms.Registry{v1alpha1.PlatformX: platform}, Store: credentials.NewStore(k8s, k8s, c, "another", apps),
		}))
	}

	// noted deletes the connection with an annotation.
	noted := func(ctx context.Context, key, value string) *account {
		GinkgoHelper()
		a := connected(ctx, managed)
		base := a.read(ctx).DeepCopy()
		a.conn.Annotations = map[string]string{v1alpha1.LastAuthorAnnotation: "ann", key: value}
		Expect(k8s.Patch(ctx, a.conn, client.MergeFrom(base))).To(Succeed())
		Expect(k8s.Delete(ctx, a.conn)).To(Succeed())
		return a
	}
	at := func(ago time.Duration) string { return time.Now().Add(-ago).UTC().Format(time.RFC3339) }

	It("are deleted immediately when a user disconnects it", func(ctx SpecContext) {
		a := noted(ctx, v1alpha1.DisconnectedAnnotation, at(0))
		Eventually(copyOf(ctx, a)).Should(BeFalse())
	})

	DescribeTable("remain for a day if a tool prunes the connection after a failed disconnect", func(ctx SpecContext, key string, value func() string) {
		a := noted(ctx, key, value())
		store := credentials.NewStore(k8s, k8s, clock.RealClock{}, "reader", apps)
		Eventually(func(g Gomega) {
			entries, err := store.Entries(ctx, managed)
			g.Expect(err).NotTo(HaveOccurred())
			goneSince := map[string]time.Time{}
			for _, e := range entries {
				goneSince[e.AccountID] = e.GoneSince
			}
			g.Expect(goneSince).To(HaveKeyWithValue(a.ID, Not(BeZero())), "the missing connection was recorded")
		}).Should(Succeed())
		Expect(copyOf(ctx, a)()).To(BeTrue())
	},
		Entry("an hour later", v1alpha1.DisconnectedAnnotation, func() string { return at(time.Hour) }),
		Entry("with a forged time", v1alpha1.DisconnectedAnnotation, func() string { return at(-time.Hour) }),
		Entry("with no time at all", v1alpha1.DisconnectedAnnotation, func() string { return "now" }),
		Entry("by an apiserver that recorded only the user", "example.com/note", func() string { return "x" }),
	)

	It("remain for a day otherwise, even if the leader changes", func(ctx SpecContext) {
		a := newAccount(ctx, managed, nil).create(ctx)
		other := newAccount(ctx, managed, nil).create(ctx)
		Eventually(a.state(ctx)).Should(Equal("True Connected"))
		Eventually(other.state(ctx)).Should(Equal("True Connected"))
		Expect(k8s.Delete(ctx, a.conn)).To(Succeed())
		now := time.Now().Add(time.Minute)
		Expect(swept(now).Sweep(ctx)).To(Succeed())
		Expect(swept(now.Add(23 * time.Hour)).Sweep(ctx)).To(Succeed())
		Expect(copyOf(ctx, a)()).To(BeTrue())

		By("counted again from the next deletion if the connection was recreated meanwhile")
		a.again(ctx)
		Eventually(a.state(ctx)).Should(Equal("True Connected"))
		Expect(swept(now.Add(23 * time.Hour)).Sweep(ctx)).To(Succeed())
		Expect(k8s.Delete(ctx, a.conn)).To(Succeed())
		later := now.Add(30 * time.Hour)
		Expect(swept(later).Sweep(ctx)).To(Succeed())
		Expect(swept(later.Add(23 * time.Hour)).Sweep(ctx)).To(Succeed())

		By("going then")
		Expect(swept(later.Add(25 * time.Hour)).Sweep(ctx)).To(Succeed())
		Eventually(copyOf(ctx, a)).Should(BeFalse())
		Expect(copyOf(ctx, other)()).To(BeTrue(), "the other account's copy remains")
	})

	It("remain while another connection has the account", func(ctx SpecContext) {
		a := newAccount(ctx, managed, nil)
		too := a.conn.DeepCopy()
		too.Name += "-too"
		a.create(ctx)
		Expect(k8s.Create(ctx, too)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, too))).To(Succeed()) })
		Eventually(a.state(ctx)).Should(Equal("True Connected"))
		Expect(k8s.Delete(ctx, a.conn)).To(Succeed())
		Expect(swept(time.Now().Add(48 * time.Hour)).Sweep(ctx)).To(Succeed())
		Expect(swept(time.Now().Add(96 * time.Hour)).Sweep(ctx)).To(Succeed())
		Expect(copyOf(ctx, a)()).To(BeTrue())
	})
})

var _ = Describe("A renewal while the Kubernetes API is unavailable", func() {
	It("is stored if the API is back before the manager stops, and does not use a token twice", func(ctx SpecContext) {
		a := newExpired(ctx, byHand).create(ctx)
		var down atomic.Bool
		away := make(chan struct{}, 100)
		api := interceptor.NewClient(k8s, interceptor.Funcs{
			Patch: func(ctx context.Context, api client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if down.Load() {
					select {
					case away <- struct{}{}:
					default:
					}
					return apierrors.NewServiceUnavailable("away")
				}
				return api.Patch(ctx, obj, patch, opts...)
			},
		})
		refreshed := calls(ctx, "refresh_token")
		r := newManager("one", api, watched{Platform: platform, after: func(context.Context) { down.Store(true) }})
		running, stop := context.WithCancel(ctx)
		examined := make(chan error, 1)
		go func() { _, err := r.Reconcile(running, a.request()); examined <- err }()
		Eventually(away).Should(Receive(), "the token is renewed, and not stored")

		By("stopping the manager")
		stop()
		kept := make(chan error, 1)
		go func() { kept <- r.Flusher().Start(running) }()
		Eventually(away).Should(Receive(), "the manager retries the write")
		Consistently(kept, 200*time.Millisecond).ShouldNot(Receive(), "the manager waits for it")
		down.Store(false)
		Eventually(kept).Should(Receive(Succeed()))
		Eventually(examined).Should(Receive(Succeed()))
		Expect(calls(ctx, "refresh_token") - refreshed).To(Equal(1))
		Expect(a.inUse(ctx)).NotTo(Equal(a.AccessToken))
		Expect(a.examined(ctx, newManager("two", k8s, platform))).To(Equal("Connected"))
		Expect(calls(ctx, "refresh_token") - refreshed).To(Equal(1))
	})
})

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

var _ = Describe("The working copy of a deleted connection", func() {
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

	DescribeTable("is not changed by a connection with another name and unconfirmed tokens",
		func(ctx SpecContext, tokens func() map[string]string, reason string) {
			refreshed := calls(ctx, "refresh_token")
			b := a.renamed(ctx, tokens())
			Expect(b.examined(ctx, r)).To(Equal(reason))
			Expect(a.inUse(ctx)).To(Equal(inUse))
			Expect(calls(ctx, "refresh_token")).To(Equal(refreshed), "no refresh token is spent to find out")
			Expect(b.read(ctx).Status.CredentialsVersion).To(BeEmpty(), "the copy belongs to another connection")

			By("recreating the connection")
			a.again(ctx)
			Expect(a.examined(ctx, r)).To(Equal("Connected"))
			Expect(a.inUse(ctx)).To(Equal(inUse))
		},
		Entry("a guessed token", func() map[string]string {
			return map[string]string{v1alpha1.CredentialsAccessToken: "guessed"}
		}, "TokenExpired"),
		Entry("tokens from Git that were used long ago", func() map[string]string { return ended(map[string]string{"refreshToken": "spent"}) }, "TokenExpired"),
		Entry("no copy", func() map[string]string { return map[string]string{"token": "x"} }, "CredentialsInvalid"),
	)

	It("explains the remedy for a connection with another name whose refresh token is not tried", func(ctx SpecContext) {
		b := a.renamed(ctx, ended(tokensOf(a.grant(ctx))))
		Expect(b.examined(ctx, r)).To(Equal("TokenExpired"))
		told := b.condition(ctx, v1alpha1.ConditionReady)
		Expect(told).To(And(ContainSubstring("still work"), ContainSubstring(a.working(ctx).Name), ContainSubstring("delete")))
		Expect(b.examined(ctx, r)).To(Equal("TokenExpired"))
		Expect(b.condition(ctx, v1alpha1.ConditionReady)).To(Equal(told), "a message that changes is a write")

		By("deleting the copy, as the message instructs")
		Expect(k8s.Delete(ctx, a.working(ctx))).To(Succeed())
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
	})

	It("is kept while the platform does not identify the new tokens' account, and replaced afterwards", func(ctx SpecContext) {
		fresh := a.grant(ctx)
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "status", Status: 503, Times: 1})
		b := a.renamed(ctx, tokensOf(fresh))
		Expect(b.examined(ctx, r)).To(Equal("PlatformUnavailable"))
		Expect(a.inUse(ctx)).To(Equal(inUse))
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.inUse(ctx)).To(Equal(fresh.AccessToken))
	})

	It("is replaced if its own tokens are rejected and only the new refresh token is left to try", func(ctx SpecContext) {
		fresh := a.grant(ctx)
		b := a.renamed(ctx, ended(tokensOf(fresh)))
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_revoked", Times: 1})
		a.fault(ctx, sandboxtest.Fault{Operation: "refresh_token", Kind: "token_revoked", Times: 1})
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
		Expect(a.inUse(ctx)).NotTo(BeElementOf(inUse, fresh.AccessToken, "ended-long-ago"))
	})
})

var _ = Describe("A user's Secret with the name of Herald's register", func() {
	It("is not changed, and its Connection explains the remedy", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "named-"}}
		Expect(k8s.Create(ctx, namespace)).To(Succeed())
		a := newAccount(ctx, namespace.Name, nil)
		a.secret.Name, a.conn.Spec.CredentialsSecretRef.Name = credentials.RegisterName, credentials.RegisterName
		a.create(ctx)
		given, r := a.stored(ctx), newManager("one", k8s, platform)
		Expect(a.examined(ctx, r)).To(Equal("CredentialsInvalid"))
		Expect(a.condition(ctx, v1alpha1.ConditionReady)).To(ContainSubstring("rename it"))
		Expect(a.stored(ctx)).To(Equal(given))
		Expect(copyOf(ctx, a)()).To(BeFalse())

		By("renaming it")
		Expect(k8s.Delete(ctx, given)).To(Succeed())
		Expect(k8s.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "acme"}, StringData: tokensOf(a.Account)})).To(Succeed())
		base := a.read(ctx).DeepCopy()
		a.conn.Spec.CredentialsSecretRef.Name = "acme"
		Expect(k8s.Patch(ctx, a.conn, client.MergeFrom(base))).To(Succeed())
		Expect(a.examined(ctx, r)).To(Equal("Connected"))
	})
})
