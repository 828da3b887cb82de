// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/internal/credentials"
)

var _ = DescribeTable("A Connection lives with every name that Kubernetes takes, and so does its Secret:", func(ctx SpecContext, name, secret string) {
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
	Entry("that begins as Herald's own Secrets do", "herald-credentials", "herald-credentials-mine"),
	Entry("of 253 characters", strings.Repeat("c", 253), strings.Repeat("s", 253)),
	Entry("of 253 digits and dots", strings.Repeat("7.", 126)+"7", strings.Repeat("8.", 126)+"8"),
)
