// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// born returns a post as the apiserver creates it, and as a restore does.
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

var _ = Describe("A post's identity annotations", Ordered, func() {
	var editor client.Client

	BeforeAll(func(ctx SpecContext) {
		Expect(admin.Create(ctx, born("marked"))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, born("marked"))).To(Succeed()) })
		editor = asPerson(ctx, "herald-editor")
		Eventually(func() error {
			return patchPost(ctx, editor, `{"metadata":{"annotations":{"social.herald.dev/born-at":null}}}`)
		}).Should(MatchError(ContainSubstring("herald-post-marks")))
	})

	DescribeTable("which users may not", func(ctx SpecContext, patch string) {
		outcomeIs(patchPost(ctx, editor, patch), policy, "social.herald.dev/")
	},
		Entry("remove", `{"metadata":{"annotations":null}}`),
		Entry("change, so that a copy appears to be new", `{"metadata":{"annotations":{"social.herald.dev/born-at":"2999-01-01T00:00:00.000Z"}}}`),
		Entry("assign to another request", `{"metadata":{"annotations":{"social.herald.dev/request":"2:def"}}}`),
	)

	It("allow all other changes", func(ctx SpecContext) {
		outcomeIs(patchPost(ctx, editor, `{"metadata":{"annotations":{"social.herald.dev/settle":"0=not-sent","note":"x"}},"spec":{"draft":false}}`), nobody)
		outcomeIs(editor.Delete(ctx, born("marked"), client.DryRunAll), nobody)
		outcomeIs(patchPost(ctx, manager, `{"metadata":{"annotations":{"social.herald.dev/settle":null}}}`), nobody)
	})

	It("can be restored by users with that permission", func(ctx SpecContext) {
		restored := born("p" + strings.Repeat("a", 25))
		restored.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
		restored.Annotations[v1alpha1.AuthorAnnotation] = "oidc:ada"
		outcomeIs(editor.Create(ctx, restored.DeepCopy(), client.DryRunAll), policy, "herald-restorer")
		outcomeIs(admin.Create(ctx, restored.DeepCopy(), client.DryRunAll), nobody)
		backup := asPerson(ctx, "herald-restorer", "herald-editor")
		Eventually(func() error { return backup.Create(ctx, restored.DeepCopy(), client.DryRunAll) }).Should(Succeed())
	})

	DescribeTable("which users may not invent", func(ctx SpecContext, edit func(*v1alpha1.Post), words ...string) {
		invented := born("invented")
		invented.Annotations = nil
		edit(invented)
		outcomeIs(editor.Create(ctx, invented, client.DryRunAll), words...)
	},
		Entry("a post without them", func(*v1alpha1.Post) {}, nobody),
		Entry("the fingerprint of an Idempotency-Key's request", func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.RequestAnnotation: "v9:anything"}
		}, policy, "social.herald.dev/request"),
		Entry("the name reserved for an Idempotency-Key", func(p *v1alpha1.Post) { p.Name = "p" + strings.Repeat("a", 25) }, policy, "choose another name"),
		Entry("a creation time", func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: "2026-12-01T09:00:00.000Z"}
		}, policy, "social.herald.dev/born-at"),
		Entry("an author", func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.AuthorAnnotation: "oidc:ceo@example.com"}
		}, policy, "social.herald.dev/author"),
		Entry("an agent whose post waits for review", func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.AgentAnnotation: "Claude", v1alpha1.WantedAtAnnotation: v1alpha1.WantedNow}
		}, policy, "social.herald.dev/agent, social.herald.dev/wanted-at"),
		Entry("an origin", func(p *v1alpha1.Post) { p.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb} }, policy, "social.herald.dev/origin"),
	)

	It("cannot be added later by a user", func(ctx SpecContext) {
		outcomeIs(patchPost(ctx, editor, `{"metadata":{"annotations":{"social.herald.dev/author":"oidc:ceo@example.com"}}}`), policy, "social.herald.dev/author")
		outcomeIs(patchPost(ctx, editor, `{"metadata":{"labels":{"social.herald.dev/origin":"web"}}}`), policy, "social.herald.dev/origin")
	})

	It("can be set by the manager for the armed object only", func(ctx SpecContext) {
		var marked v1alpha1.Post
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(born("marked")), &marked)).To(Succeed())
		armed := `{"metadata":{"annotations":{"social.herald.dev/armed":%q},"finalizers":["social.herald.dev/delivery"]}}`
		outcomeIs(patchPost(ctx, manager, fmt.Sprintf(armed, "marked/"+string(marked.UID))), nobody)
		outcomeIs(patchPost(ctx, manager, fmt.Sprintf(armed, "marked/another")), policy, "herald-manager-posts")
		outcomeIs(patchPost(ctx, manager, fmt.Sprintf(armed, "other/"+string(marked.UID))), policy, "herald-manager-posts")
	})

	It("include the shard, which the manager may change, and no other label", func(ctx SpecContext) {
		outcomeIs(patchPost(ctx, manager, `{"metadata":{"labels":{"social.herald.dev/shard":"03"}}}`), nobody)
		outcomeIs(patchPost(ctx, manager, `{"metadata":{"labels":{"social.herald.dev/shard":"other"}}}`), policy, "herald-manager-posts")
		outcomeIs(patchPost(ctx, manager, `{"metadata":{"labels":{"social.herald.dev/shard":"03","team":"other"}}}`), policy, "herald-manager-posts")
		outcomeIs(patchPost(ctx, manager, `{"metadata":{"labels":{"social.herald.dev/origin":"web"}}}`), policy, "herald-manager-posts")
	})

	It("cannot be removed by the manager", func(ctx SpecContext) {
		outcomeIs(patchPost(ctx, manager, `{"metadata":{"annotations":{"social.herald.dev/born-at":null}}}`), policy, "herald-manager-posts")
	})
})

func patchPost(ctx context.Context, who client.Client, patch string) error {
	return who.Patch(ctx, born("marked"), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
}
