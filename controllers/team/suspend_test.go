// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// suspended is the reason in a team's Suspended condition, and the number of its past and current suspensions.
type suspended struct {
	reason       string
	ended, lasts int
}

func suspension(ctx context.Context, teamName string) func(g Gomega) suspended {
	return func(g Gomega) (found suspended) {
		var t v1alpha1.Team
		g.Expect(k8s.Get(ctx, types.NamespacedName{Name: teamName}, &t)).To(Succeed())
		if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionSuspended); c != nil {
			found.reason = c.Reason
		}
		for _, s := range t.Status.Suspensions {
			if s.Until == nil {
				found.lasts++
			} else {
				found.ended++
			}
		}
		return found
	}
}

// These specs change the suite's suspend switch for all teams, so they run alone.
var _ = Describe("A suspended team", Serial, func() {
	It("reports each suspension with its time, and keeps it after the end", func(ctx SpecContext) {
		t := ready(ctx, "acme")
		n := t.Name
		Expect(suspension(ctx, n)(Default)).To(Equal(suspended{}))

		suspend := func(on bool) {
			GinkgoHelper()
			Eventually(func() error {
				if err := k8s.Get(ctx, types.NamespacedName{Name: n}, t); err != nil {
					return err
				}
				t.Spec.Suspend = on
				return k8s.Update(ctx, t)
			}).Should(Succeed())
		}
		suspend(true)
		Eventually(suspension(ctx, n)).Should(Equal(suspended{v1alpha1.ReasonSuspendedBySpec, 0, 1}))
		Eventually(readiness(ctx, n)).Should(Equal("True NamespaceReady"), "the namespace is there")
		stop.Set(true)
		Eventually(func() (string, error) {
			err := k8s.Get(ctx, types.NamespacedName{Name: n}, t)
			return meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionSuspended).Message, err
		}).Should(ContainSubstring("set spec.suspend to false, and suspend in the manager's configuration"), "one release is not enough")
		suspend(false)
		Eventually(suspension(ctx, n)).Should(Equal(suspended{v1alpha1.ReasonSuspendedByConfiguration, 0, 1}), "both causes are one suspension")
		stop.Set(false)
		Eventually(suspension(ctx, n)).Should(Equal(suspended{"", 1, 0}))
		stop.Set(true)
		Eventually(suspension(ctx, n)).Should(Equal(suspended{v1alpha1.ReasonSuspendedByConfiguration, 1, 1}))
		stop.Set(false)
		Eventually(suspension(ctx, n)).Should(Equal(suspended{"", 2, 0}))
	})

	It("is suspended and resumed immediately, even if teams have other work", func(ctx SpecContext) {
		n, slow := name("acme"), name(slowBucket)
		t, other := create(ctx, n, n), create(ctx, slow, slow)
		for _, n := range []string{n, slow} {
			Eventually(readiness(ctx, n)).Should(Equal("True NamespaceReady"))
		}
		Expect(k8s.Delete(ctx, other)).To(Succeed())
		Eventually(held.asked).Should(Receive(), "the suite's only worker waits for a store")

		Expect(k8s.Patch(ctx, t, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`)))).To(Succeed())
		Eventually(suspension(ctx, n)).Should(Equal(suspended{v1alpha1.ReasonSuspendedBySpec, 0, 1}))
		Expect(k8s.Patch(ctx, t, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`)))).To(Succeed())
		Eventually(suspension(ctx, n)).Should(Equal(suspended{"", 1, 0}))
		stop.Set(true)
		Eventually(suspension(ctx, n)).Should(Equal(suspended{v1alpha1.ReasonSuspendedByConfiguration, 1, 1}))
		stop.Set(false)
		Eventually(suspension(ctx, n)).Should(Equal(suspended{"", 2, 0}))

		close(held.answers)
		Eventually(func() bool { return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(other), other)) }).Should(BeTrue())
	})

	It("may be one whose namespace was rejected", func(ctx SpecContext) {
		n := name("kept")
		t := create(ctx, n, manager.Namespace)
		Eventually(func() error {
			if err := k8s.Get(ctx, types.NamespacedName{Name: n}, t); err != nil {
				return err
			}
			t.Spec.Suspend = true
			return k8s.Update(ctx, t)
		}).Should(Succeed())
		Eventually(suspension(ctx, n)).Should(Equal(suspended{v1alpha1.ReasonSuspendedBySpec, 0, 1}))
	})
})
