// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/envtest"
)

var _ = Describe("A connection of a starter team", func() {
	merge := func(ctx context.Context, obj client.Object, patch string) {
		GinkgoHelper()
		Expect(k8s.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	}

	It("beyond the tenth is not used until another is removed or the plan changes", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: limitedTeam}})).To(Succeed())
		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: limitedTeam}, Spec: v1alpha1.TeamSpec{
			Namespace: limitedTeam, Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter},
		}}
		Expect(envtest.Own(ctx, k8s, team)).To(Succeed())
		accounts := make([]*account, 12)
		for i := range accounts {
			accounts[i] = newAccount(ctx, limitedTeam, nil)
			// The names sort in order of creation, even within one second.
			accounts[i].conn.Name = fmt.Sprintf("acme-%02d", i)
			accounts[i].create(ctx)
		}
		// ready returns the readiness of all connections.
		ready := func() string {
			states := ""
			for _, a := range accounts {
				switch a.state(ctx)() {
				case "True " + v1alpha1.ReasonConnected:
					states += "+"
				case "False " + v1alpha1.ReasonPlanLimit:
					states += "-"
				case "False " + v1alpha1.ReasonDisabled:
					states += "o"
				default:
					states += "?"
				}
			}
			return states
		}
		Eventually(ready).Should(Equal("++++++++++--"))

		By("disabling one")
		merge(ctx, accounts[3].conn, `{"spec":{"disabled":true}}`)
		Eventually(ready).Should(Equal("+++o+++++++-"))
		By("enabling it again, which excludes the youngest")
		merge(ctx, accounts[3].conn, `{"spec":{"disabled":false}}`)
		Eventually(ready).Should(Equal("++++++++++--"))
		By("requesting a check of one beyond the plan")
		token := accounts[11].probe(ctx)
		Eventually(accounts[11].state(ctx)).Should(Equal("False PlanLimit " + token))
		merge(ctx, accounts[11].conn, `{"metadata":{"annotations":null}}`)
		By("deleting one")
		Expect(k8s.Delete(ctx, accounts[0].conn)).To(Succeed())
		accounts = accounts[1:]
		Eventually(accounts[9].state(ctx)).Should(Equal("True Connected"))
		By("changing the plan")
		merge(ctx, team, `{"spec":{"subscription":{"plan":"unlimited"}}}`)
		Eventually(accounts[10].state(ctx)).Should(HavePrefix("True Connected"))
		By("the account is usable again")
		merge(ctx, team, `{"spec":{"subscription":{"plan":"starter"}}}`)
		Eventually(accounts[10].state(ctx)).Should(HavePrefix("False PlanLimit"))
	})
})
