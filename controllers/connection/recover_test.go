// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/test/sandboxtest"
)

var _ = Describe("Renewed tokens that a container has left", func() {
	var p pod
	BeforeEach(func() { p = pod{platform: v1alpha1.PlatformX, client: platform, folder: GinkgoT().TempDir()} })

	stored := func(ctx context.Context, a *account) func() bool {
		return func() bool { return string(a.working(ctx).Data["refreshToken"]) != a.RefreshToken }
	}

	It("do not wait for one of which the Kubernetes API says nothing", func(ctx SpecContext) {
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
		Eventually(count).Should(Equal(len(accounts)-1), "the others' grants end when another manager's patience does")
		close(goOn)
		Eventually(ended).Should(BeClosed())
		Expect(count()).To(Equal(len(accounts)))
		Expect(p.kept()).To(BeZero())
	})

	Describe("and that the disk does not give", func() {
		// The folder is missing when the container starts, like a volume that is mounted late.
		var back func()
		away := func(p pod) {
			GinkgoHelper()
			Expect(os.Rename(p.folder, p.folder+".away")).To(Succeed())
			back = sync.OnceFunc(func() { Expect(os.Rename(p.folder+".away", p.folder)).To(Succeed()) })
			DeferCleanup(func() { back() })
		}

		It("are stored once it does, and what they were obtained with is not spent before", func(ctx SpecContext) {
			a, other, before := p.account(ctx), p.account(ctx), p.renewals(ctx)
			p.killed(ctx, a)
			folder := p.open()
			away(p)
			r := p.startWith(k8s, folder)

			By("examining accounts meanwhile")
			a.fault(ctx, sandboxtest.Fault{Operation: "identity", Kind: "token_expired", Times: 1})
			Expect(a.examined(ctx, r)).To(Equal("CredentialsUnavailable"))
			ready := meta.FindStatusCondition(a.read(ctx).Status.Conditions, v1alpha1.ConditionReady)
			Expect(ready.Message).To(And(ContainSubstring("cannot be read"), ContainSubstring("connect the account again")))
			Expect(p.renewals(ctx)-before).To(Equal(1), "the renewal of the container before")
			Expect(other.examined(ctx, r)).To(Equal("Connected"), "no renewal of that one was begun")
			Expect(stored(ctx, other)()).To(BeTrue())

			By("having the folder back")
			ended := make(chan struct{})
			go func() { defer close(ended); r.Recover(ctx) }()
			back()
			Eventually(ended).Should(BeClosed())
			Expect(stored(ctx, a)()).To(BeTrue())
			Expect(a.examined(ctx, r)).To(Equal("Connected"))
			Expect(p.renewals(ctx)-before).To(Equal(2), "one of each account")
		})

		It("are not waited for when the account was given new tokens", func(ctx SpecContext) {
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
			Expect(p.kept()).To(BeZero())
			Expect(a.working(ctx).Annotations).NotTo(HaveKey(credentials.ClaimAnnotation))
		})

		It("hold up no account whose renewal this container began itself", func(ctx SpecContext) {
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
