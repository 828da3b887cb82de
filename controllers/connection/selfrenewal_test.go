// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/suite"
)

var _ = Describe("A token that renews itself", func() {
	It("is renewed ahead of its end without a refresh token, and kept while it is too young", func(ctx SpecContext) {
		// Threads renews a token after a sixtieth of its lifetime.
		id := fmt.Sprint(1000 + serial.Add(1))
		made := suite.Must(site.Account(ctx, "threads", id, map[string]any{"token_ttl_s": 60}))
		Expect(made.RefreshToken).To(BeEmpty())
		meta := metav1.ObjectMeta{Namespace: byHand, Name: "threads-" + id}
		a := (&account{
			Account: made,
			conn: &v1alpha1.Connection{ObjectMeta: meta, Spec: v1alpha1.ConnectionSpec{
				Platform: v1alpha1.PlatformThreads, AccountID: id, CredentialsSecretRef: v1alpha1.LocalReference{Name: meta.Name},
			}},
			// It expires so soon that its renewal is due.
			secret: &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{
				v1alpha1.CredentialsAccessToken: made.AccessToken,
				v1alpha1.CredentialsExpiresAt:   time.Now().Add(30 * time.Second).UTC().Format(time.RFC3339),
			}},
		}).create(ctx)
		r := suite.Must(connection.New(connection.Options{
			Client: k8s, APIReader: k8s, Clock: clock.RealClock{},
			Owned:     envtest.EveryNamespace,
			Platforms: platforms.Registry{v1alpha1.PlatformThreads: threads.New(threads.Config{Config: platforms.Config{APIURL: site.URL + "/threads"}}, transport.New(transport.Options{}))},
			Store:     credentials.NewStore(k8s, k8s, clock.RealClock{}, "one", apps),
		}))

		Eventually(func() string {
			probe := a.probe(ctx)
			Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
			Expect(a.state(ctx)()).To(Equal("True Connected "+probe), "a renewal that is refused for now is no trouble")
			return string(a.working(ctx).Data[v1alpha1.CredentialsAccessToken])
		}).ShouldNot(Equal(made.AccessToken))
		Expect(a.working(ctx).Data).NotTo(HaveKey(v1alpha1.CredentialsRefreshToken))
		Expect(a.read(ctx).Status.App).To(BeEmpty(), "Threads asks for no app to renew a token")
		Expect(a.working(ctx).Annotations).NotTo(HaveKey(credentials.AppMarkAnnotation))
		Expect(a.read(ctx).Status.TokenExpiresAt.Time).To(BeTemporally(">", time.Now().Add(50*time.Second)))
	})
})
