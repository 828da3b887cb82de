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
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/envtest"
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
	// swept runs the sweep as a process that has not seen the deletion.
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

	It("go at once when a person disconnects it", func(ctx SpecContext) {
		a := noted(ctx, v1alpha1.DisconnectedAnnotation, at(0))
		Eventually(copyOf(ctx, a)).Should(BeFalse())
	})

	DescribeTable("stay for a day when a tool prunes the connection after a disconnect that failed", func(ctx SpecContext, key string, value func() string) {
		a := noted(ctx, key, value())
		store := credentials.NewStore(k8s, k8s, clock.RealClock{}, "reader", apps)
		Eventually(func(g Gomega) {
			entries, err := store.Entries(ctx, managed)
			g.Expect(err).NotTo(HaveOccurred())
			goneSince := map[string]time.Time{}
			for _, e := range entries {
				goneSince[e.AccountID] = e.GoneSince
			}
			g.Expect(goneSince).To(HaveKeyWithValue(a.ID, Not(BeZero())), "it was seen that the connection is gone")
		}).Should(Succeed())
		Expect(copyOf(ctx, a)()).To(BeTrue())
	},
		Entry("an hour later", v1alpha1.DisconnectedAnnotation, func() string { return at(time.Hour) }),
		Entry("with a time that somebody made up", v1alpha1.DisconnectedAnnotation, func() string { return at(-time.Hour) }),
		Entry("with no time at all", v1alpha1.DisconnectedAnnotation, func() string { return "now" }),
		Entry("of an apiserver that noted the person alone", "example.com/note", func() string { return "x" }),
	)

	It("stay for a day otherwise, whoever leads by then", func(ctx SpecContext) {
		a := newAccount(ctx, managed, nil).create(ctx)
		other := newAccount(ctx, managed, nil).create(ctx)
		Eventually(a.state(ctx)).Should(Equal("True Connected"))
		Eventually(other.state(ctx)).Should(Equal("True Connected"))
		Expect(k8s.Delete(ctx, a.conn)).To(Succeed())
		now := time.Now().Add(time.Minute)
		Expect(swept(now).Sweep(ctx)).To(Succeed())
		Expect(swept(now.Add(23 * time.Hour)).Sweep(ctx)).To(Succeed())
		Expect(copyOf(ctx, a)()).To(BeTrue())

		By("beginning anew when the connection was there meanwhile")
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
		Expect(copyOf(ctx, other)()).To(BeTrue(), "the other account has its connection")
	})

	It("stay while another connection is of the account", func(ctx SpecContext) {
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

var _ = Describe("A renewal while the Kubernetes API is away", func() {
	It("is stored when the API is back before the manager has stopped, and spends nothing twice", func(ctx SpecContext) {
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

		By("telling the manager to stop")
		stop()
		kept := make(chan error, 1)
		go func() { kept <- r.Flusher().Start(running) }()
		Eventually(away).Should(Receive(), "it is tried on")
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
