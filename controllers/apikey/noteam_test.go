// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apikey_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/test/envtest"
)

var _ = Describe("An APIKey in a namespace that no Team owns", func() {
	It("gets no token until a Team owns it, and is not in force without one", func(ctx SpecContext) {
		key := create(ctx, homeless, v1alpha1.APIKeySpec{})
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("False NoTeam")))
		Expect(meta.FindStatusCondition(key.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring(`spec.namespace "homeless"`))
		Expect(key.Status.Tokens).To(BeEmpty())
		Expect(passes.Longest()).To(And(BeNumerically(">", 0), BeNumerically("<=", pacing.APIKeyTimeout)), "a pass has an end")
		_, err := secretOf(ctx, key)
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)

		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: homeless}, Spec: v1alpha1.TeamSpec{Namespace: homeless}}
		Expect(envtest.Own(ctx, k8s, team)).To(Succeed())
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("True Active")))
		made := hashes(key)
		Expect(made).To(HaveLen(1))

		Expect(k8s.Delete(ctx, team)).To(Succeed())
		Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("False NoTeam")))
		Expect(hashes(key)).To(Equal(made), "it is the same key when a Team comes back")
	})
})
