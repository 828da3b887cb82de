// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/connection"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/tiktok"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

// pod is the folder of a pod, which survives its containers.
type pod struct {
	platform v1alpha1.Platform
	client   platforms.Platform
	folder   string
}

// start returns the reconciler of the pod's container, with a client of the Kubernetes API.
func (p pod) start(api client.Client) *connection.Reconciler {
	GinkgoHelper()
	return p.startWith(api, p.open())
}

// open opens the folder, as a container does at startup.
func (p pod) open() *credentials.Spool {
	GinkgoHelper()
	return suite.Must(credentials.OpenSpool(p.folder, func() string { return strings.Repeat("k", credentials.MinSpoolKey) }, GinkgoLogr))
}

func (p pod) startWith(api client.Client, kept *credentials.Spool) *connection.Reconciler {
	GinkgoHelper()
	return suite.Must(connection.New(connection.Options{
		Client: api, APIReader: api, Clock: clock.RealClock{}, Owned: envtest.EveryNamespace, Grace: time.Minute, Spool: kept,
		Platforms: platforms.Registry{p.platform: p.client},
		Store:     credentials.NewStore(api, api, clock.RealClock{}, "the pod", apps),
	}))
}

// storedTokens returns the number of tokens in the folder.
func (p pod) storedTokens() int {
	GinkgoHelper()
	files := suite.Must(os.ReadDir(p.folder))
	n := 0
	for _, file := range files {
		if !file.IsDir() {
			n++
		}
	}
	return n
}

// account creates an account on the pod's platform with a token that is due for renewal.
func (p pod) account(ctx context.Context) *account {
	GinkgoHelper()
	id := fmt.Sprint(1000 + serial.Add(1))
	created := suite.Must(site.Account(ctx, string(p.platform), id, nil))
	created.ExpiresAt = time.Now().Add(time.Minute)
	meta := metav1.ObjectMeta{Namespace: byHand, Name: string(p.platform) + "-" + id}
	a := (&account{
		Account: created,
		conn: &v1alpha1.Connection{ObjectMeta: meta, Spec: v1alpha1.ConnectionSpec{
			Platform: p.platform, AccountID: id, CredentialsSecretRef: v1alpha1.LocalReference{Name: meta.Name},
		}},
		secret: &corev1.Secret{ObjectMeta: meta, StringData: tokensOf(created)},
	}).create(ctx)
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // the context of the spec has ended by then
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, a.conn))).To(Succeed())
		Expect(site.ClearFaults(ctx)).To(Succeed())
	})
	return a
}

// renewals returns the number of renewals that the platform received.
func (p pod) renewals(ctx context.Context) int {
	GinkgoHelper()
	counts := suite.Must(site.Calls(ctx, string(p.platform)))
	return counts["refresh_token"]
}

// killed renews an account's token and stops the container before the Kubernetes API has stored the new one.
func (p pod) killed(ctx context.Context, a *account) {
	GinkgoHelper()
	var away atomic.Bool
	kept := p.storedTokens()
	api := interceptor.NewClient(k8s, interceptor.Funcs{
		Patch: func(ctx context.Context, api client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if away.Load() {
				runtime.Goexit()
			}
			return api.Patch(ctx, obj, patch, opts...)
		},
	})
	p.client = watched{Platform: p.client, after: func(context.Context) { away.Store(true) }}
	r, ended := p.start(api), make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		_, _ = r.Reconcile(ctx, a.request())
		Fail("the process was not killed")
	}()
	Eventually(ended).Should(BeClosed())
	Expect(string(a.working(ctx).Data["refreshToken"])).To(Equal(a.RefreshToken), "the new token was stored nowhere in the cluster")
	Expect(p.storedTokens()).To(Equal(kept + 1))
}

// works examines an account, which must then be connected.
func (p pod) works(ctx context.Context, r *connection.Reconciler, a *account) {
	GinkgoHelper()
	probe := a.probe(ctx)
	Expect(r.Reconcile(ctx, a.request())).Error().NotTo(HaveOccurred())
	Expect(a.state(ctx)()).To(Equal("True Connected " + probe))
}

var _ = Describe("A renewed token that could not be stored before the process was killed", func() {
	newPod := func(on v1alpha1.Platform) pod {
		p := pod{platform: on, client: platform, folder: GinkgoT().TempDir()}
		if on == v1alpha1.PlatformTikTok {
			p.client = tiktok.New(tiktok.Config{
				APIURL: site.URL + "/tiktok", WebURL: site.URL + "/tiktok", ClientID: "herald", ClientSecret: func() string { return "secret" },
			}, transport.New(transport.Options{}))
		}
		return p
	}

	DescribeTable("is stored by the next start of the container, which does not lead", func(ctx SpecContext, on v1alpha1.Platform) {
		p := newPod(on)
		a, before := p.account(ctx), p.renewals(ctx)
		p.killed(ctx, a)
		p.start(k8s).Recover(ctx)
		Expect(string(a.working(ctx).Data["refreshToken"])).NotTo(Equal(a.RefreshToken))
		Expect(a.working(ctx).Annotations).NotTo(HaveKey(credentials.ClaimAnnotation))
		Expect(p.storedTokens()).To(BeZero())

		By("electing another replica, which checks the account")
		other := pod{platform: on, client: p.client, folder: GinkgoT().TempDir()}.start(k8s)
		p.works(ctx, other, a)
		Expect(p.renewals(ctx)-before).To(Equal(1), "a refresh token is worth one call")

		By("renewing with the stored token")
		Expect(site.Fault(ctx, sandboxtest.Fault{Platform: string(on), Account: a.ID, Operation: "identity", Kind: "token_expired", Times: 1})).To(Succeed())
		p.works(ctx, other, a)
		Expect(p.renewals(ctx) - before).To(Equal(2))
	},
		Entry("on X", v1alpha1.PlatformX),
		Entry("on TikTok", v1alpha1.PlatformTikTok),
	)

	It("is stored by a check that runs first, and its predecessor is not used again", func(ctx SpecContext) {
		p := newPod(v1alpha1.PlatformX)
		a, before := p.account(ctx), p.renewals(ctx)
		p.killed(ctx, a)
		p.works(ctx, p.start(k8s), a)
		Expect(p.renewals(ctx) - before).To(Equal(1))
		Expect(p.storedTokens()).To(BeZero())
	})

	It("is kept across restarts, and stored once the Kubernetes API is back", func(ctx SpecContext) {
		p := newPod(v1alpha1.PlatformX)
		a, before := p.account(ctx), p.renewals(ctx)
		p.killed(ctx, a)
		var away atomic.Bool
		away.Store(true)
		tries := make(chan struct{}, 100)
		api := interceptor.NewClient(k8s, interceptor.Funcs{
			Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if away.Load() {
					tries <- struct{}{}
					return apierrors.NewServiceUnavailable("away")
				}
				return api.Get(ctx, key, obj, opts...)
			},
		})
		running, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); p.start(api).Recover(running) }()
		Eventually(tries).Should(Receive())
		stop()
		Eventually(ended).Should(BeClosed())
		Expect(p.storedTokens()).To(Equal(1))

		again := make(chan struct{})
		go func() { defer close(again); p.start(api).Recover(ctx) }()
		Eventually(tries).Should(Receive())
		away.Store(false)
		Eventually(again).Should(BeClosed())
		p.works(ctx, p.start(k8s), a)
		Expect(p.renewals(ctx) - before).To(Equal(1))
		Expect(p.storedTokens()).To(BeZero())
	})

	DescribeTable("is dropped", func(ctx SpecContext, meanwhile func(context.Context, *account)) {
		p := newPod(v1alpha1.PlatformX)
		a := p.account(ctx)
		p.killed(ctx, a)
		meanwhile(ctx, a)
		var before corev1.SecretList
		Expect(k8s.List(ctx, &before, client.InNamespace(byHand))).To(Succeed())
		p.start(k8s).Recover(ctx)
		var after corev1.SecretList
		Expect(k8s.List(ctx, &after, client.InNamespace(byHand))).To(Succeed())
		Expect(after.Items).To(Equal(before.Items), "no Secret changed")
		Expect(p.storedTokens()).To(BeZero())
	},
		Entry("if the account has another one", func(ctx context.Context, a *account) {
			secret := a.working(ctx)
			secret.Data["refreshToken"] = []byte("newer")
			Expect(k8s.Update(ctx, secret)).To(Succeed())
		}),
		Entry("if the account was disconnected", func(ctx context.Context, a *account) {
			Expect(k8s.Delete(ctx, a.working(ctx))).To(Succeed())
		}),
	)

	It("is not kept after it was stored", func(ctx SpecContext) {
		p := newPod(v1alpha1.PlatformX)
		a := p.account(ctx)
		p.works(ctx, p.start(k8s), a)
		Expect(string(a.working(ctx).Data["refreshToken"])).NotTo(Equal(a.RefreshToken))
		Expect(p.storedTokens()).To(BeZero())
	})
})

var _ = Describe("Renewed tokens that a container has not stored", func() {
	var p pod
	BeforeEach(func() { p = pod{platform: v1alpha1.PlatformX, client: platform, folder: GinkgoT().TempDir()} })

	stored := func(ctx context.Context, a *account) func() bool {
		return func() bool { return string(a.working(ctx).Data["refreshToken"]) != a.RefreshToken }
	}

	It("do not wait for one whose Secret the Kubernetes API does not return", func(ctx SpecContext) {
		accounts := []*account{p.account(ctx), p.account(ctx), p.account(ctx)}
		for _, a := range accounts {
			p.killed(ctx, a)
		}
		// The first request for a copy gets no response while the others wait.
		var first atomic.Value
		goOn := make(chan struct{})
		api := interceptor.NewClient(k8s, interceptor.Funcs{
			Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if strings.HasPrefix(key.Name, "herald-credentials-") && (first.CompareAndSwap(nil, key) || first.Load() == any(key)) {
					select {
					case <-goOn:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return api.Get(ctx, key, obj, opts...)
			},
		})
		ended := make(chan struct{})
		go func() { defer close(ended); p.start(api).Recover(ctx) }()
		count := func() (n int) {
			for _, a := range accounts {
				if stored(ctx, a)() {
					n++
				}
			}
			return n
		}
		Eventually(count).Should(Equal(len(accounts)-1), "the other grants end with the other manager's lease")
		close(goOn)
		Eventually(ended).Should(BeClosed())
		Expect(count()).To(Equal(len(accounts)))
		Expect(p.storedTokens()).To(BeZero())
	})

	Describe("while the disk is unreadable", func() {
		// The folder is missing when the container starts, like a volume that is mounted late.
		var back func()
		away := func(p pod) {
			GinkgoHelper()
			Expect(os.Rename(p.folder, p.folder+".away")).To(Succeed())
			back = sync.OnceFunc(func() { Expect(os.Rename(p.folder+".away", p.folder)).To(Succeed()) })
			DeferCleanup(func() { back() })
		}

		It("are stored once the disk is readable, and the refresh tokens used for them are not used before", func(ctx SpecContext) {
			a, other, before := p.account(ctx), p.account(ctx), p.renewals(ctx)
			p.killed(ctx, a)
			folder := p.open()
			away(p)
			r := p.startWith(k8s, folder)

			By("checking accounts meanwhile")
			a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 1})
			Expect(a.examined(ctx, r)).To(Equal("CredentialsUnavailable"))
			ready := meta.FindStatusCondition(a.read(ctx).Status.Conditions, v1alpha1.ConditionReady)
			Expect(ready.Message).To(And(ContainSubstring("cannot be read"), ContainSubstring("connect the account again")))
			Expect(p.renewals(ctx)-before).To(Equal(1), "the renewal of the container before")
			Expect(other.examined(ctx, r)).To(Equal("Connected"), "the other account's renewal was not started")
			Expect(stored(ctx, other)()).To(BeTrue())

			By("restoring the folder")
			ended := make(chan struct{})
			go func() { defer close(ended); r.Recover(ctx) }()
			back()
			Eventually(ended).Should(BeClosed())
			Expect(stored(ctx, a)()).To(BeTrue())
			Expect(a.examined(ctx, r)).To(Equal("Connected"))
			Expect(p.renewals(ctx)-before).To(Equal(2), "one of each account")
		})

		It("are not awaited if the account has new tokens", func(ctx SpecContext) {
			a := p.account(ctx)
			p.killed(ctx, a)
			folder := p.open()
			away(p)
			r := p.startWith(k8s, folder)
			a.put(ctx, tokensOf(a.grant(ctx)))
			Expect(a.examined(ctx, r)).To(Equal("Connected"))
			a.rotate(ctx, r)
			inUse := a.inUse(ctx)
			back()
			r.Recover(ctx)
			Expect(a.inUse(ctx)).To(Equal(inUse))
			Expect(p.storedTokens()).To(BeZero())
			Expect(a.working(ctx).Annotations).NotTo(HaveKey(credentials.ClaimAnnotation))
		})

		It("do not block accounts whose renewal this container started itself", func(ctx SpecContext) {
			a, before := p.account(ctx), p.renewals(ctx)
			folder := p.open()
			away(p)
			r := p.startWith(k8s, folder)
			a.fault(ctx, sandboxtest.Fault{Operation: "refresh_token", Kind: "status", Status: 503, Times: 1})
			Expect(a.examined(ctx, r)).To(Equal("Connected"), "the token before still works")
			Expect(a.working(ctx).Annotations).To(HaveKey(credentials.ClaimAnnotation))
			Expect(a.examined(ctx, r)).To(Equal("Connected"))
			Expect(stored(ctx, a)()).To(BeTrue())
			Expect(p.renewals(ctx) - before).To(Equal(2))
		})
	})
})
