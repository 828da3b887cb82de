// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/test/sandboxtest"
)

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

	It("keep no worker from the accounts of others while one of them is examined", func(ctx SpecContext) {
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
		Eventually(asked).Should(BeClosed(), "the platform is asked for a new token")

		for range 3 {
			passed := make(chan ctrl.Result, 1)
			go func() {
				defer GinkgoRecover()
				result, err := r.Reconcile(ctx, b.request())
				Expect(err).NotTo(HaveOccurred())
				passed <- result
			}()
			var result ctrl.Result
			Eventually(passed).Should(Receive(&result), "it does not wait where it stands")
			Expect(result.RequeueAfter).To(BeNumerically(">", 0), "it comes again")
		}
		Expect(b.read(ctx).Status.Conditions).To(BeEmpty(), "of a connection that waits nothing is said")
		goOn()
		Eventually(examined).Should(Receive(Succeed()))
		Expect(b.examined(ctx, r)).To(Equal("Connected"))
		Expect(c.examined(ctx, r)).To(Equal("Connected"))
		Expect(calls(ctx, "refresh_token")-refreshed).To(Equal(1), "all use the one that was renewed")
	})

	It("change nothing in the copy by being examined, however many they are", func(ctx SpecContext) {
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
			Expect(one.read(ctx).Status.CredentialsVersion).To(Equal(before), "a version that changes is one that the other connections have not confirmed")
		}
		Expect(a.working(ctx).ResourceVersion).To(Equal(before))
	})
})
