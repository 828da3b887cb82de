// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apikey_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/test/envtest"
)

var _ = Describe("An APIKey in a namespace that no Team owns", func() {
	It("does not get a token until a Team owns the namespace, and is invalid without one", func(ctx SpecContext) {
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
		Expect(hashes(key)).To(Equal(made), "the key is the same after a Team was created")
	})
})

var _ = DescribeTable("An APIKey works with every name that Kubernetes allows:", func(ctx SpecContext, name, secretName string) {
	token := strings.Repeat("t", 32)
	key := &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: managed, Name: name},
		Spec:       v1alpha1.APIKeySpec{Tokens: []v1alpha1.APIKeyToken{{Name: "token"}, {Name: token}}},
	}
	Expect(k8s.Create(ctx, key)).To(Succeed())
	Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("True Active")))
	named := map[string]bool{}
	for _, of := range []string{"token", token} {
		made := key.Status.Token(of)
		Expect(made.SecretRef).NotTo(BeNil())
		named[made.SecretRef.Name] = true
		var secret corev1.Secret
		Expect(k8s.Get(ctx, types.NamespacedName{Namespace: managed, Name: made.SecretRef.Name}, &secret)).To(Succeed())
		Expect(metav1.IsControlledBy(&secret, key)).To(BeTrue())
		Expect(made.SHA256).To(Equal(sha(key, &secret)))
		Expect(secret.Name).To(HaveSuffix("-" + of))
	}
	Expect(named).To(HaveLen(2))
	if secretName != "" {
		Expect(named).To(HaveKey(secretName), "where both fit, the Secret is named by both")
	}

	By("withdrawing a token")
	gone := key.Status.Token(token).SecretRef.Name
	key.Spec.Tokens = []v1alpha1.APIKeyToken{{Name: "token"}}
	Expect(k8s.Update(ctx, key)).To(Succeed())
	Eventually(reload(ctx, key)).Should(WithTransform(hashes, HaveLen(1)))
	Expect(apierrors.IsNotFound(k8s.Get(ctx, types.NamespacedName{Namespace: managed, Name: gone}, &corev1.Secret{}))).To(BeTrue())

	By("revoking it")
	key.Spec.Revoked = true
	Expect(k8s.Update(ctx, key)).To(Succeed())
	Eventually(reload(ctx, key)).Should(WithTransform(readiness, Equal("False Revoked")))
	var secrets corev1.SecretList
	Expect(k8s.List(ctx, &secrets, client.InNamespace(managed))).To(Succeed())
	for i := range secrets.Items {
		Expect(metav1.IsControlledBy(&secrets.Items[i], key)).To(BeFalse(), secrets.Items[i].Name)
	}
},
	Entry("a digit", "0", "0-token"),
	Entry("with dots", "a.b.c", "a.b.c-token"),
	Entry("the name of another key's Secret", "0-token", "0-token-token"),
	Entry("of the longest length for both", strings.Repeat("k", 253-len("-token")), strings.Repeat("k", 253-len("-token"))+"-token"),
	Entry("one character longer", strings.Repeat("k", 254-len("-token")), ""),
	Entry("of 253 characters", strings.Repeat("k", 253), ""),
	Entry("of 253 characters, with a different last one", strings.Repeat("k", 252)+"l", ""),
	Entry("of 253 digits and dots", strings.Repeat("7.", 126)+"7", ""),
	Entry("with a dash at the cut", strings.Repeat("k", 180)+strings.Repeat("-", 72)+"k", ""),
)
