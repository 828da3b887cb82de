// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

var _ = DescribeTable("a Media lives with every name that Kubernetes takes:", func(ctx SpecContext, name string) {
	m := created(ctx, managed, func(m *v1alpha1.Media) { m.Name = name })
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload)(g, m)
	}).Should(Succeed())
	put(ctx, m, "0123456789")
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded)(g, m)
	}).Should(Succeed())
	Expect(k8s.Delete(ctx, m)).To(Succeed())
	Eventually(func() bool { return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)) }).Should(BeTrue())
	Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
},
	Entry("a digit", "0"),
	Entry("with dots", "a.b.png"),
	Entry("of 253 characters", strings.Repeat("m", 253)),
	Entry("of 253 digits and dots", strings.Repeat("7.", 126)+"7"),
)
