// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// born is a post as the apiserver makes one, and as a restore does.
func born(name string) *v1alpha1.Post {
	return &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: name, Annotations: map[string]string{
			v1alpha1.BornAnnotation: "2026-12-01T09:00:00.000Z", v1alpha1.RequestAnnotation: "2:abc",
		}},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText, Draft: true,
			Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello"}},
		},
	}
}

var _ = Describe("What Herald knows a post by", Ordered, func() {
	var editor client.Client

	BeforeAll(func(ctx SpecContext) {
		Expect(admin.Create(ctx, born("marked"))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, born("marked"))).To(Succeed()) })
		editor = asPerson(ctx, "herald-editor")
		Eventually(func() error {
			return patchPost(ctx, editor, `{"metadata":{"annotations":{"social.herald.dev/born-at":null}}}`)
		}).Should(MatchError(ContainSubstring("herald-post-marks")))
	})

	DescribeTable("is not a person's to", func(ctx SpecContext, patch string) {
		outcomeIs(patchPost(ctx, editor, patch), policy, "must not be published twice")
	},
		Entry("take away", `{"metadata":{"annotations":null}}`),
		Entry("move, so that a copy seems new", `{"metadata":{"annotations":{"social.herald.dev/born-at":"2999-01-01T00:00:00.000Z"}}}`),
		Entry("give to another request", `{"metadata":{"annotations":{"social.herald.dev/request":"2:def"}}}`),
	)

	It("hinders nothing else", func(ctx SpecContext) {
		outcomeIs(patchPost(ctx, editor, `{"metadata":{"annotations":{"social.herald.dev/settle":"0=not-sent","note":"x"}},"spec":{"draft":false}}`), nobody)
		outcomeIs(editor.Create(ctx, born("restored"), client.DryRunAll), nobody)
		outcomeIs(editor.Delete(ctx, born("marked"), client.DryRunAll), nobody)
		outcomeIs(patchPost(ctx, manager, `{"metadata":{"annotations":{"social.herald.dev/settle":null}}}`), nobody)
	})

	It("is noted by the manager for the object that it arms, and for no other", func(ctx SpecContext) {
		var marked v1alpha1.Post
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(born("marked")), &marked)).To(Succeed())
		armed := `{"metadata":{"annotations":{"social.herald.dev/armed":%q},"finalizers":["social.herald.dev/delivery"]}}`
		outcomeIs(patchPost(ctx, manager, fmt.Sprintf(armed, "marked/"+string(marked.UID))), nobody)
		outcomeIs(patchPost(ctx, manager, fmt.Sprintf(armed, "marked/another")), policy, "herald-manager-posts")
		outcomeIs(patchPost(ctx, manager, fmt.Sprintf(armed, "other/"+string(marked.UID))), policy, "herald-manager-posts")
	})

	It("is not the manager's to take away either", func(ctx SpecContext) {
		outcomeIs(patchPost(ctx, manager, `{"metadata":{"annotations":{"social.herald.dev/born-at":null}}}`), policy, "herald-manager-posts")
	})
})

func patchPost(ctx context.Context, who client.Client, patch string) error {
	return who.Patch(ctx, born("marked"), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
}
