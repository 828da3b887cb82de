// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/x"
)

// revocable is a platform that revokes tokens, except those of the app "refused".
type revocable struct{ *x.Platform }

// revoked has the app and its secret for each access token that was to be revoked.
var revoked sync.Map

func (revocable) Revoke(_ context.Context, token platforms.Token) error {
	revoked.Store(token.Access, token.ClientID+" "+token.ClientSecret)
	if token.ClientID == "refused" {
		return platforms.Errorf(platforms.ClassTransient, "the server is away")
	}
	return nil
}

var _ = Describe("The access to a disconnected account", func() {
	// issued creates a connection whose token belongs to an app that Herald registered, unless app is empty.
	issued := func(ctx context.Context, app string) *account {
		GinkgoHelper()
		a := newAccount(ctx, managed, nil)
		if app != "" {
			a.secret.StringData[v1alpha1.CredentialsClientID], a.secret.StringData[v1alpha1.CredentialsClientSecret] = app, "hidden"
		}
		a.create(ctx)
		Eventually(a.state(ctx)).Should(Equal("True Connected"))
		return a
	}
	disconnect := func(ctx context.Context, a *account) {
		GinkgoHelper()
		base := a.read(ctx).DeepCopy()
		a.conn.Annotations = map[string]string{v1alpha1.LastAuthorAnnotation: "ann", v1alpha1.DisconnectedAnnotation: time.Now().UTC().Format(time.RFC3339)}
		Expect(k8s.Patch(ctx, a.conn, client.MergeFrom(base))).To(Succeed())
		Expect(k8s.Delete(ctx, a.conn)).To(Succeed())
	}
	revocation := func(a *account) string {
		found, _ := revoked.Load(a.AccessToken)
		text, _ := found.(string)
		return text
	}

	DescribeTable("is revoked if Herald registered the token's app", func(ctx SpecContext, app, want string) {
		a := issued(ctx, app)
		disconnect(ctx, a)
		Eventually(copyOf(ctx, a)).Should(BeFalse(), "the tokens are deleted in any case")
		Expect(revocation(a)).To(Equal(want))
	},
		Entry("by that app", "app", "app hidden"),
		Entry("once, because the server may be gone forever", "refused", "refused hidden"),
		Entry("and not if a user supplied the token", "", ""),
	)

	It("remains while a connection in another namespace has the account, whose token is the same", func(ctx SpecContext) {
		a := issued(ctx, "app")
		other := a.conn.DeepCopy()
		other.Namespace, other.ResourceVersion, other.UID = byHand, "", ""
		Expect(k8s.Create(ctx, other)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, other))).To(Succeed()) })
		disconnect(ctx, a)
		Eventually(copyOf(ctx, a)).Should(BeFalse())
		Expect(revocation(a)).To(BeEmpty())
	})

	It("remains when a tool deletes the connection, which it may apply again", func(ctx SpecContext) {
		a := issued(ctx, "app")
		Expect(k8s.Delete(ctx, a.conn)).To(Succeed())
		store := credentials.NewStore(k8s, k8s, clock.RealClock{}, "reader", apps)
		Eventually(func(g Gomega) {
			entries, err := store.Entries(ctx, managed)
			g.Expect(err).NotTo(HaveOccurred())
			gone := map[string]bool{}
			for _, e := range entries {
				gone[e.AccountID] = !e.GoneSince.IsZero()
			}
			g.Expect(gone).To(HaveKeyWithValue(a.ID, true))
		}).Should(Succeed())
		Expect(revocation(a)).To(BeEmpty())
	})
})
