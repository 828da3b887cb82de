// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package deletions_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
)

var _ = Describe("A team budget enforced by a ResourceQuota", func() {
	It("rejects the post beyond it from any client, and accepts one again after a deletion", func(ctx SpecContext) {
		t := newTeam(ctx, func(team *v1alpha1.Team) { team.Spec.Budget = v1alpha1.TeamBudget{Posts: new(int32(2))} })
		counted := func() (string, error) {
			var found corev1.ResourceQuota
			err := admin.Get(ctx, client.ObjectKey{Namespace: t.name, Name: v1alpha1.BudgetQuota}, &found)
			used, hard := found.Status.Used[quota.ResourceNameOf("posts")], found.Status.Hard[quota.ResourceNameOf("posts")]
			return fmt.Sprintf("%s of %s", &used, &hard), err
		}
		Eventually(counted).Should(Equal("0 of 2"), "Kubernetes' controller counts what Herald's bounds")

		draft := func(p *v1alpha1.Post) { p.Spec.Draft = true }
		first := t.post(ctx, "one", draft)
		t.post(ctx, "two", draft)
		third := first.DeepCopy()
		third.ObjectMeta = metav1.ObjectMeta{Namespace: t.name, Name: "three"}
		refused := admin.Create(ctx, third)
		Expect(apierrors.IsForbidden(refused)).To(BeTrue(), "%v", refused)
		Expect(refused).To(MatchError(ContainSubstring("exceeded quota: " + v1alpha1.BudgetQuota)))

		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(gone(ctx, first)).Should(BeTrue())
		third.ResourceVersion = ""
		Eventually(func() error { return admin.Create(ctx, third) }).Should(Succeed())
		Eventually(counted).Should(Equal("2 of 2"))
	})
})
