// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
)

var _ = DescribeTable("A Team works with every name that the schema allows:", func(ctx SpecContext, teamName, namespace string) {
	t := create(ctx, teamName, namespace)
	Eventually(readiness(ctx, teamName)).Should(Equal("True NamespaceReady"))
	var found corev1.Namespace
	Expect(k8s.Get(ctx, types.NamespacedName{Name: namespace}, &found)).To(Succeed())
	Expect(found.Labels).To(HaveKeyWithValue(v1alpha1.TeamLabel, teamName))
	Expect(k8s.Delete(ctx, t)).To(Succeed())
	Eventually(func() bool { return apierrors.IsNotFound(k8s.Get(ctx, types.NamespacedName{Name: teamName}, t)) }).Should(BeTrue())
},
	Entry("a digit", "7", "names-digit"),
	Entry("with dots", "a.b.c", "names-dots"),
	Entry("of 63 characters, with a namespace of the same length", strings.Repeat("t", 63), "names-"+strings.Repeat("n", 57)),
	Entry("of 63 digits and dots", strings.Repeat("7.", 31)+"7", "names-digits"),
)

var _ = DescribeTable("A Team with a name that cannot be a label is rejected, with the reason:", func(ctx SpecContext, teamName string) {
	t := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: teamName}, Spec: v1alpha1.TeamSpec{Namespace: "names-refused"}}
	err := k8s.Create(ctx, t)
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	Expect(err).To(MatchError(ContainSubstring("at most 63 characters, because it is the value of its namespace's label social.herald.dev/team")))
},
	Entry("of 64 characters", strings.Repeat("t", 64)),
	Entry("of 253 digits and dots", strings.Repeat("7.", 126)+"7"),
)
