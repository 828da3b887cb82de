// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// oddNames returns unusual names that Kubernetes accepts.
func oddNames() []string {
	return []string{
		"0", "1.2", "a.b.c-d", "posts", "edit", "unneeded.json", "herald-credentials", "herald-credentials-aaaa",
		strings.Repeat("n", 200), strings.Repeat("n", 201), strings.Repeat("n", 250), strings.Repeat("n", 253),
		strings.Repeat("7.", 126) + "7", strings.Repeat("n", 199) + "." + strings.Repeat("m", 53), strings.Repeat("n", 200) + ".json",
	}
}

var _ = Describe("A post lives with every name that Kubernetes takes", func() {
	It("is published, leaves its record, and is known by it when it comes back", func(ctx SpecContext) {
		k := newKeeping()
		runManager(k.options)
		acme := newTeam(ctx)
		connection := strings.Repeat("c.", 126) + "c"
		acme.account = acme.connect(ctx, connection)
		through := func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = connection }
		for i, name := range oddNames() {
			By(fmt.Sprintf("a name of %d characters: %.20s", len(name), name))
			text := fmt.Sprint("hello, by the name ", i)
			p := posted(ctx, acme.apply(ctx, name, text, through))
			remove(ctx, p)
			Expect(k.of(ctx, acme.namespace, name)).NotTo(BeNil())
			p = posted(ctx, acme.apply(ctx, name, text, through))
			Expect(publishesBy(acme.account)).To(Equal(i+1), "it is not sent again")
			Eventually(warned(ctx, acme.namespace, name, v1alpha1.ReasonAlreadyPublished)).ShouldNot(BeEmpty(), "events are about it")
		}
	})

	It("refuses one that the web application cannot show, and says why", func(ctx SpecContext) {
		acme := newTeam(ctx)
		err := k8s.Create(ctx, &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: acme.namespace, Name: "new"},
			Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{
				ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello",
			}}},
		})
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("posts/new of the web application")))
	})
})
