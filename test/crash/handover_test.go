// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/sandboxtest"
)

// slowCall is the duration of the call in progress when the manager is stopped: longer than the handover, and shorter
// than the call timeout.
const slowCall = 12 * time.Second

var _ = Describe("A manager stopped during a call", func() {
	// The managers' kubeconfig has no namespace, so the lease is in Kubernetes' default namespace.
	holder := func(ctx SpecContext) func(Gomega) string {
		leases, err := typedcoordinationv1.NewForConfig(kubernetes)
		Expect(err).NotTo(HaveOccurred())
		return func(g Gomega) string {
			lease, err := leases.Leases(metav1.NamespaceDefault).Get(ctx, "herald-manager", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			if lease.Spec.HolderIdentity == nil {
				return ""
			}
			return *lease.Spec.HolderIdentity
		}
	}

	It("lets another manager publish immediately, and finishes and records its own call", func(ctx SpecContext) {
		first := startManager("--leader-identity", "first")
		defer func() { first.kill() }()
		tm := newTeam(ctx)
		Eventually(holder(ctx)).Should(Equal("first"))
		second := startManager("--leader-identity", "second")
		defer func() { second.kill() }()

		Expect(platform.Fault(ctx, sandboxtest.Fault{
			Platform: string(v1alpha1.PlatformX), Account: tm.accounts[v1alpha1.PlatformX].ID, Operation: "publish", Kind: "delay",
			DelayMS: int(slowCall.Milliseconds()), Times: 1,
		})).To(Succeed())
		had := publishCalls(ctx, v1alpha1.PlatformX)
		slow := tm.post(ctx, aText, "under way when its manager is stopped", v1alpha1.PlatformX)
		Eventually(func() int { return publishCalls(ctx, v1alpha1.PlatformX) }).Should(Equal(had + 1))

		stopped := time.Now()
		first.terminate()
		Eventually(holder(ctx)).WithPolling(10 * time.Millisecond).Should(Equal("second"))
		fmt.Printf("roll-out: another manager leads %s after the first got its stop signal\n", time.Since(stopped).Round(time.Millisecond))
		meanwhile := tm.post(ctx, aText, "published meanwhile", v1alpha1.PlatformThreads)
		Eventually(func() bool { return over(ctx, meanwhile) }).Should(BeTrue())
		Expect(first.done).NotTo(BeClosed(), "the first manager's call is still in progress: no manager waited for it")
		Expect(over(ctx, slow)).To(BeFalse())

		Eventually(first.done).Should(BeClosed())
		settle(ctx, tm)
		sum := newTotals()
		sum.verifyTeam(ctx, tm)
		all := sum.sum(everyPair)
		Expect(all.twice).To(BeZero(), "published twice")
		Expect(all.lost+all.denied).To(BeZero(), "lost, or published but failed")
		Expect(all.looked).To(BeZero(), "the first manager has recorded its call, so no lookup was needed")
	})
})
