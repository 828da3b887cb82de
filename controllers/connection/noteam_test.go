// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/test/envtest"
)

var _ = Describe("A connection in a namespace that no Team owns", func() {
	It("is neither checked nor renewed until a Team owns it", func(ctx SpecContext) {
		asked, renewed := calls(ctx, "identity"), calls(ctx, "refresh_token")
		// Its token is about to expire, so it would be renewed immediately.
		a := newAccount(ctx, homeless, map[string]any{"token_ttl_s": 1}).create(ctx)
		Eventually(a.state(ctx)).Should(Equal("False NoTeam"))
		Expect(meta.FindStatusCondition(a.read(ctx).Status.Conditions, v1alpha1.ConditionReconciling)).NotTo(BeNil(), "a Team may be on the way")
		probe := a.probe(ctx)
		Eventually(a.state(ctx)).Should(Equal("False NoTeam "+probe), "the probe request is marked as handled")
		Expect(calls(ctx, "identity")).To(Equal(asked))
		Expect(isTransient.Longest()).To(And(BeNumerically(">", 0), BeNumerically("<=", pacing.ConnectionTimeout)), "a pass has an end")
		Expect(calls(ctx, "refresh_token")).To(Equal(renewed))

		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: homeless}, Spec: v1alpha1.TeamSpec{Namespace: homeless}}
		Expect(envtest.Own(ctx, k8s, team)).To(Succeed())
		Eventually(a.state(ctx)).Should(Equal("True Connected " + probe))
		Expect(calls(ctx, "refresh_token")).To(BeNumerically(">", renewed))

		Expect(k8s.Delete(ctx, team)).To(Succeed())
		Eventually(a.state(ctx)).Should(Equal("False NoTeam " + probe))
	})
})

var _ = DescribeTable("A Connection and its Secret work with every name that Kubernetes allows:", func(ctx SpecContext, name, secret string) {
	a := newAccount(ctx, managed, nil)
	a.conn.Name, a.secret.Name, a.conn.Spec.CredentialsSecretRef.Name = name, secret, secret
	a.create(ctx)
	Eventually(a.state(ctx)).Should(Equal("True Connected"))
	Expect(a.working(ctx).Annotations[credentials.UsersAnnotation]).To(ContainSubstring(name))
	probe := a.probe(ctx)
	Eventually(a.state(ctx)).Should(Equal("True Connected " + probe))

	Expect(k8s.Delete(ctx, a.conn)).To(Succeed())
	Eventually(func() bool { return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(a.conn), a.conn)) }).Should(BeTrue())
},
	Entry("digits", "0", "1"),
	Entry("with dots", "a.b.c", "a.b.c-token"),
	Entry("with the prefix of Herald's own Secrets", "herald-credentials", "herald-credentials-mine"),
	Entry("of 253 characters", strings.Repeat("c", 253), strings.Repeat("s", 253)),
	Entry("of 253 digits and dots", strings.Repeat("7.", 126)+"7", strings.Repeat("8.", 126)+"8"),
)
