// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/x"
	"github.com/herald-social/herald/test/envtest"
)

// revocable is a platform that revokes tokens that belong to an app, except those of the app "refused". The app
// "single" has a separate token for each consent.
type revocable struct{ *x.Platform }

// revoked holds the app and its secret for each access token whose revocation was requested.
var revoked sync.Map

func (revocable) Revocable(token platforms.Token) (ok, shared bool) {
	return token.ClientID != "", token.ClientID != "single"
}

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
	// disconnect disconnects the account and waits until its tokens are deleted.
	disconnect := func(ctx context.Context, a *account) {
		GinkgoHelper()
		base := a.read(ctx).DeepCopy()
		a.conn.Annotations = map[string]string{v1alpha1.LastAuthorAnnotation: "ann", v1alpha1.DisconnectedAnnotation: time.Now().UTC().Format(time.RFC3339)}
		Expect(k8s.Patch(ctx, a.conn, client.MergeFrom(base))).To(Succeed())
		Expect(k8s.Delete(ctx, a.conn)).To(Succeed())
		Eventually(copyOf(ctx, a)).Should(BeFalse(), "the tokens are deleted in any case")
	}
	revocation := func(a *account) string {
		found, _ := revoked.Load(a.AccessToken)
		text, _ := found.(string)
		return text
	}
	const pause = 2 * time.Minute
	// named creates another connection with the account.
	named := func(ctx context.Context, a *account) *v1alpha1.Connection {
		GinkgoHelper()
		other := a.conn.DeepCopy()
		other.Namespace, other.ResourceVersion, other.UID = byHand, "", ""
		Expect(k8s.Create(ctx, other)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, other))).To(Succeed()) })
		return other
	}

	DescribeTable("is revoked two minutes later if Herald registered the token's app", func(ctx SpecContext, app, want string) {
		a := issued(ctx, app)
		before := time.Now()
		disconnect(ctx, a)
		running.RevokeDue(ctx, before.Add(pause-time.Second))
		Expect(revocation(a)).To(BeEmpty(), "consents and posts that are under way may use the token")
		running.RevokeDue(ctx, time.Now().Add(pause))
		Expect(revocation(a)).To(Equal(want))
		revoked.Clear()
		running.RevokeDue(ctx, time.Now().Add(2*pause))
		Expect(revocation(a)).To(BeEmpty(), "there is one attempt")
	},
		Entry("by that app", "app", "app hidden"),
		Entry("once, because the server may be gone forever", "refused", "refused hidden"),
		Entry("and not if a user supplied the token", "", ""),
	)

	DescribeTable("when a connection in another namespace was given the account meanwhile", func(ctx SpecContext, app, want string) {
		a := issued(ctx, app)
		disconnect(ctx, a)
		other := named(ctx, a)
		other.Status.ConnectedAt = v1alpha1.NewTimePtr(time.Now())
		Expect(k8s.Status().Update(ctx, other)).To(Succeed())
		running.RevokeDue(ctx, time.Now().Add(pause))
		Expect(revocation(a)).To(Equal(want))
	},
		Entry("remains if both have the same token", "app", ""),
		Entry("is revoked if each consent has its own token", "single", "single hidden"),
	)

	It("does not remain because of a connection that never had access, which anyone can create", func(ctx SpecContext) {
		a := issued(ctx, "app")
		named(ctx, a)
		disconnect(ctx, a)
		running.RevokeDue(ctx, time.Now().Add(pause))
		Expect(revocation(a)).To(Equal("app hidden"))
	})

	DescribeTable("depends on the copy of the token that another team has for a connection which a tool may apply again", func(ctx SpecContext, token, want string) {
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kept-"}}
		Expect(k8s.Create(ctx, space)).To(Succeed())
		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: space.Name}, Spec: v1alpha1.TeamSpec{Namespace: space.Name}}
		Expect(envtest.Own(ctx, k8s, team)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(k8s.Delete(ctx, team)).To(Succeed()) })
		Eventually(func() (bool, error) { return isTransient.Owned(ctx, space.Name) }).Should(BeTrue())
		a := issued(ctx, "app")
		kept := *a
		kept.conn = a.conn.DeepCopy()
		kept.conn.Namespace = space.Name
		kept.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: space.Name, Name: a.secret.Name}, StringData: tokensOf(a.Account)}
		if token != "" {
			kept.secret.StringData[v1alpha1.CredentialsAccessToken] = token
		}
		Expect(k8s.Create(ctx, kept.secret)).To(Succeed())
		kept.copied(ctx)
		disconnect(ctx, a)
		running.RevokeDue(ctx, time.Now().Add(pause))
		Expect(revocation(a)).To(Equal(want))
	},
		Entry("the same token, which would not work any more", "", ""),
		Entry("another token, which may be made up", "another", "app hidden"),
	)

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
		running.RevokeDue(ctx, time.Now().Add(pause))
		Expect(revocation(a)).To(BeEmpty())
	})
})
