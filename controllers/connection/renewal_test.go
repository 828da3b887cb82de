// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/threads"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// watched is X with callbacks before and after each renewal.
type watched struct {
	platforms.Platform
	before, after func(ctx context.Context)
}

func (w watched) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	if w.before != nil {
		w.before(ctx)
	}
	renewed, err := w.Platform.Refresh(ctx, token)
	if w.after != nil {
		w.after(ctx)
	}
	return renewed, err
}

// newManager returns another manager's reconciler.
func newManager(name string, api client.Client, p platforms.Platform) *connection.Reconciler {
	GinkgoHelper()
	return suite.Must(connection.New(connection.Options{
		Client: api, APIReader: api, Clock: clock.RealClock{},
		Owned:     envtest.EveryNamespace,
		Grace:     time.Minute,
		Platforms: platforms.Registry{v1alpha1.PlatformX: p},
		Store:     credentials.NewStore(api, api, clock.RealClock{}, name, apps),
	}))
}

var _ = Describe("A renewal", func() {
	It("uses a refresh token once if two managers overlap", func(ctx SpecContext) {
		a := newAccount(ctx, byHand, nil)
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 2})
		a.create(ctx).copied(ctx)
		refreshed := calls(ctx, "refresh_token")
		// Both hold the same version of the Secret when they start to renew.
		var both sync.WaitGroup
		both.Add(2)
		arrive := func(old client.WithWatch) client.WithWatch {
			var once sync.Once
			return interceptor.NewClient(old, interceptor.Funcs{
				Patch: func(ctx context.Context, api client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					once.Do(func() { both.Done(); both.Wait() })
					return api.Patch(ctx, obj, patch, opts...)
				},
			})
		}
		var running sync.WaitGroup
		for _, name := range []string{"one", "two"} {
			r := newManager(name, arrive(k8s), platform)
			running.Go(func() {
				defer GinkgoRecover()
				Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
			})
		}
		running.Wait()
		Expect(calls(ctx, "refresh_token")-refreshed).To(Equal(1), "a second renewal would kill the grant")

		Expect(newManager("three", k8s, platform).Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
		probe := a.probe(ctx)
		// If the losing manager wrote the status last, requested probes have a minimum interval.
		one := newManager("one", k8s, platform)
		Eventually(func(g Gomega) {
			g.Expect(one.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
			g.Expect(a.state(ctx)()).To(Equal("True Connected " + probe))
		}).Should(Succeed())
	})

	It("marks the token as belonging to Herald's app, unlike a user's Secret", func(ctx SpecContext) {
		a, b := newAccount(ctx, byHand, nil), newAccount(ctx, byHand, nil)
		r := newManager("one", k8s, platform)
		examined := func(a *account) *v1alpha1.Connection {
			GinkgoHelper()
			probe := a.probe(ctx)
			Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
			Expect(a.state(ctx)()).To(Equal("True Connected " + probe))
			return a.read(ctx)
		}
		a.create(ctx)
		Expect(examined(a).Status.App).To(BeEmpty())
		Expect(a.conn.Status.Verified()).To(BeTrue())

		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 1})
		Expect(examined(a).Status.App).To(Equal("herald"))
		Expect(a.conn.Status.Verified()).To(BeTrue())
		Expect(examined(a).Status.App).To(Equal("herald"), "the Secret names the app")

		By("copying the mark to a token of another app")
		b.secret.Annotations = map[string]string{credentials.AppMarkAnnotation: a.working(ctx).Annotations[credentials.AppMarkAnnotation]}
		b.create(ctx)
		Expect(examined(b).Status.App).To(BeEmpty())
	})

	It("keeps a token that the API server rejected, and stores it later", func(ctx SpecContext) {
		a := newExpired(ctx, byHand).create(ctx)
		refreshed := calls(ctx, "refresh_token")
		// The API server becomes unavailable as soon as the platform has responded. Cancelling the spec's context shortens
		// the wait.
		var down atomic.Bool
		api := interceptor.NewClient(k8s, interceptor.Funcs{
			Patch: func(ctx context.Context, api client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if down.CompareAndSwap(true, false) {
					return apierrors.NewServiceUnavailable("down")
				}
				return api.Patch(ctx, obj, patch, opts...)
			},
		})
		r := newManager("one", api, watched{Platform: platform, after: func(context.Context) { down.Store(true) }})
		Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
		Expect(a.state(ctx)()).To(Equal("True Connected"))
		Expect(calls(ctx, "refresh_token") - refreshed).To(Equal(1))
		Expect(string(a.working(ctx).Data["refreshToken"])).NotTo(Equal(a.RefreshToken))
	})

	It("does not lose the token if the Secret is changed concurrently", func(ctx SpecContext) {
		a := newExpired(ctx, byHand).create(ctx)
		r := newManager("one", k8s, watched{Platform: platform, before: func(ctx context.Context) {
			secret := a.working(ctx)
			secret.Labels["app"] = "acme"
			Expect(k8s.Update(ctx, secret)).To(Succeed())
		}})
		Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
		Expect(a.state(ctx)()).To(Equal("True Connected"))
		Expect(a.working(ctx).Labels).To(HaveKeyWithValue("app", "acme"))
		Expect(string(a.working(ctx).Data["refreshToken"])).NotTo(Equal(a.RefreshToken))
	})

	It("yields to a user who concurrently stores another token in the working copy", func(ctx SpecContext) {
		a := newExpired(ctx, byHand).create(ctx)
		other := newAccount(ctx, byHand, nil)
		r := newManager("one", k8s, watched{Platform: platform, before: func(ctx context.Context) {
			secret := a.working(ctx)
			secret.StringData = tokensOf(other.Account)
			Expect(k8s.Update(ctx, secret)).To(Succeed())
		}})
		Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
		Expect(string(a.working(ctx).Data["accessToken"])).To(Equal(other.AccessToken))
		Expect(a.state(ctx)()).To(Equal("False AccountMismatch"), "the probe used the tokens from the user's Secret")
	})

	It("needs a user if the platform's response was lost", func(ctx SpecContext) {
		a := newAccount(ctx, byHand, nil)
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 5})
		a.fault(ctx, sandboxtest.Fault{Operation: "refresh_token", Kind: "drop_after", Times: 1})
		a.create(ctx)
		r := newManager("one", k8s, platform)
		Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
		Expect(a.state(ctx)()).To(Equal("False PlatformUnavailable"), "the network may have failed")
		probe := a.probe(ctx)
		Eventually(func(g Gomega) {
			result, err := r.Reconcile(ctx, a.request())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter).To(BeNumerically(">", 0), "the platform was probed recently")
			g.Expect(a.state(ctx)()).To(Equal("False Revoked " + probe))
		}, 20*time.Second).Should(Succeed())
	})

	It("is awaited while another manager may still be renewing", func(ctx SpecContext) {
		a := newExpired(ctx, byHand).create(ctx)
		dead := credentials.NewStore(k8s, k8s, clock.RealClock{}, "dead", nil)
		Expect(dead.Claim(ctx, a.conn, a.copied(ctx).Version)).Error().NotTo(HaveOccurred())
		refreshed := calls(ctx, "refresh_token")
		result := suite.Must(newManager("one", k8s, platform).Reconcile(ctx, a.request()))
		Expect(a.state(ctx)()).To(Equal("False PlatformUnavailable"))
		Expect(calls(ctx, "refresh_token")).To(Equal(refreshed))
		Expect(result.RequeueAfter.Seconds()).To(BeNumerically("~", 90, 5))
	})
})

var _ = Describe("The result of a probe", func() {
	It("is written even if another probe is requested meanwhile", func(ctx SpecContext) {
		a := newAccount(ctx, byHand, nil).create(ctx)
		first := a.probe(ctx)
		second := ""
		api := interceptor.NewClient(k8s, interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, api client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
				if second == "" {
					second = a.probe(ctx)
				}
				return api.SubResource(sub).Update(ctx, obj, opts...)
			},
		})
		r := newManager("one", api, platform)
		Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
		Expect(a.state(ctx)()).To(Equal("True Connected " + first))
		Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
		Expect(a.state(ctx)()).To(Equal("True Connected " + second))
	})

	It("is dropped if the spec has changed meanwhile", func(ctx SpecContext) {
		a := newAccount(ctx, byHand, nil).create(ctx)
		api := interceptor.NewClient(k8s, interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, api client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
				a.read(ctx).Spec.CredentialsSecretRef.Name = "another"
				Expect(k8s.Update(ctx, a.conn)).To(Succeed())
				return api.SubResource(sub).Update(ctx, obj, opts...)
			},
		})
		Expect(newManager("one", api, platform).Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
		Expect(a.read(ctx).Status.Conditions).To(BeEmpty())
	})
})

var _ = Describe("Tokens", func() {
	It("come from the Secret, and are read again if the status names another version", func(ctx SpecContext) {
		a := newAccount(ctx, byHand, nil).create(ctx)
		store := credentials.NewStore(k8s, k8s, clock.RealClock{}, "one", nil)
		tokens := connection.NewTokens(store, k8s, clock.RealClock{})
		_, err := tokens.Token(ctx, a.conn)
		Expect(credentials.ReasonOf(err)).To(Equal(credentials.Unverified), "the tokens have not been probed")
		confirm := func() {
			a.conn.Status.CredentialsVersion, a.conn.Status.VerifiedVersion = a.stored(ctx).ResourceVersion, a.stored(ctx).ResourceVersion
		}
		confirm()
		Expect(tokens.Token(ctx, a.conn)).To(HaveField("Access", a.AccessToken))

		secret := a.stored(ctx)
		secret.Data["accessToken"] = []byte("renewed")
		Expect(k8s.Update(ctx, secret)).To(Succeed())
		confirm()
		Expect(tokens.Token(ctx, a.conn)).To(HaveField("Access", "renewed"))

		Expect(k8s.Delete(ctx, &corev1.Secret{ObjectMeta: a.stored(ctx).ObjectMeta})).To(Succeed())
		tokens.Forget(a.conn)
		_, err = tokens.Token(ctx, a.conn)
		Expect(credentials.ReasonOf(err)).To(Equal(credentials.NotFound))
	})

	It("are not returned after a replacement until the requested check confirms them", func(ctx SpecContext) {
		a := newAccount(ctx, managed, nil).create(ctx)
		Eventually(a.state(ctx)).Should(HavePrefix("True Connected"))
		confirmed := a.read(ctx).DeepCopy()
		tokens := connection.NewTokens(credentials.NewStore(k8s, k8s, clock.RealClock{}, "one", nil), k8s, clock.RealClock{})
		secret := a.working(ctx)
		secret.Data["accessToken"] = []byte(a.AccessToken + "\n")
		Expect(k8s.Update(ctx, secret)).To(Succeed())

		_, err := tokens.Token(ctx, confirmed)
		Expect(credentials.ReasonOf(err)).To(Equal(credentials.Unverified))
		Eventually(func() bool {
			return a.read(ctx).Status.Verified() && a.conn.Status.CredentialsVersion == a.working(ctx).ResourceVersion && secret.ResourceVersion != confirmed.Status.CredentialsVersion
		}).Should(BeTrue())
		Expect(tokens.Token(ctx, a.conn)).To(HaveField("Access", a.AccessToken))
	})
})

var _ = Describe("A token that renews itself", func() {
	It("is renewed before it expires without a refresh token, and kept while it is too recent", func(ctx SpecContext) {
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
		Expect(a.read(ctx).Status.App).To(BeEmpty(), "Threads renews tokens without an app")
		Expect(a.working(ctx).Annotations).NotTo(HaveKey(credentials.AppMarkAnnotation))
		Expect(a.read(ctx).Status.TokenExpiresAt.Time).To(BeTemporally(">", time.Now().Add(50*time.Second)))
	})
})

var _ = Describe("Many connections of one account", func() {
	// another creates another connection with the same input.
	another := func(ctx context.Context, a *account, name string) *account {
		GinkgoHelper()
		b := &account{Account: a.Account, secret: a.secret, conn: a.conn.DeepCopy()}
		b.conn.ResourceVersion, b.conn.UID = "", ""
		b.conn.Name += "-" + name
		Expect(k8s.Create(ctx, b.conn)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, b.conn))).To(Succeed())
		})
		return b
	}

	It("do not block workers for other accounts while one of them is checked", func(ctx SpecContext) {
		a := newAccount(ctx, byHand, nil).create(ctx)
		b, c := another(ctx, a, "too"), another(ctx, a, "three")
		asked, answer := make(chan struct{}), make(chan struct{})
		goOn := sync.OnceFunc(func() { close(answer) })
		DeferCleanup(goOn)
		r := newManager("one", k8s, watched{Platform: platform, before: func(context.Context) { close(asked); <-answer }})
		a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 1})
		refreshed := calls(ctx, "refresh_token")
		examined := make(chan error, 1)
		go func() { _, err := r.Reconcile(ctx, a.request()); examined <- err }()
		Eventually(asked).Should(BeClosed(), "the renewal has been sent")

		for range 3 {
			passed := make(chan ctrl.Result, 1)
			go func() {
				defer GinkgoRecover()
				result := suite.Must(r.Reconcile(ctx, b.request()))
				passed <- result
			}()
			var result ctrl.Result
			Eventually(passed).Should(Receive(&result), "the pass does not wait for the renewal")
			Expect(result.RequeueAfter).To(BeNumerically(">", 0), "the pass is repeated")
		}
		Expect(b.read(ctx).Status.Conditions).To(BeEmpty(), "a waiting connection has no conditions")
		goOn()
		Eventually(examined).Should(Receive(Succeed()))
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
		Expect(c.examined(ctx, r)).To(Equal("Connected"))
		Expect(calls(ctx, "refresh_token")-refreshed).To(Equal(1), "all processes use the renewed token")
	})

	It("do not change the working copy when they are checked, however many exist", func(ctx SpecContext) {
		a, r := newAccount(ctx, byHand, nil).create(ctx), newManager("one", k8s, platform)
		all := []*account{a}
		for n := range 40 {
			all = append(all, another(ctx, a, fmt.Sprint(n)))
		}
		for _, one := range all {
			Expect(one.examined(ctx, r)).To(Equal("Connected"))
		}
		before := a.working(ctx).ResourceVersion
		for _, one := range all {
			Expect(one.examined(ctx, r)).To(Equal("Connected"))
			Expect(one.read(ctx).Status.CredentialsVersion).To(Equal(before), "other connections have not confirmed the new tokens")
		}
		Expect(a.working(ctx).ResourceVersion).To(Equal(before))
	})
})
