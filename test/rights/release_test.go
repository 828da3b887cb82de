// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// withFinalizers returns a post with finalizers of Herald and of another program.
func withFinalizers() *v1alpha1.Post {
	p := born("held")
	p.Finalizers = []string{"example.com/kept", v1alpha1.DeliveryFinalizer}
	return p
}

// ofRelease acts as the service account of `herald release`, with all permissions for Herald's kinds.
var ofRelease client.Client

var _ = Describe("With any roles, the release is restricted by its policy", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		ofRelease = as("herald-release", "powerful")
		Expect(admin.Create(ctx, withFinalizers())).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.Patch(ctx, withFinalizers(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
			Expect(admin.Delete(ctx, withFinalizers())).To(Succeed())
		})
		Eventually(func() error { return ofRelease.Delete(ctx, withFinalizers(), client.DryRunAll) }).Should(MatchError(ContainSubstring("herald-release")))
	})

	DescribeTable("the release changes a post", func(ctx SpecContext, patch string, words ...string) {
		outcomeIs(change(ctx, ofRelease, withFinalizers(), patch), words...)
	},
		Entry("by removing Herald's finalizer", `{"metadata":{"finalizers":["example.com/kept"]}}`, nobody),
		Entry("by removing another program's finalizer", `{"metadata":{"finalizers":null}}`, policy, "herald-release", "finalizers"),
		Entry("by adding a finalizer", `{"metadata":{"finalizers":["example.com/kept","social.herald.dev/delivery","social.herald.dev/more"]}}`, policy, "herald-release"),
		Entry("by changing its text", `{"metadata":{"finalizers":["example.com/kept"]},"spec":{"targets":[{"connectionRef":{"name":"x"},"caption":"mine"}]}}`, policy, "herald-release"),
		Entry("by publishing a draft", `{"spec":{"draft":false}}`, policy, "herald-release"),
		Entry("by setting an annotation, such as a verdict", `{"metadata":{"annotations":{"social.herald.dev/settle":"0=not-sent"}}}`, policy, "herald-release"),
		Entry("by changing a label", `{"metadata":{"labels":{"app":"b"}}}`, policy, "herald-release"),
		Entry("by adding an owner, so that Kubernetes deletes it", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"a","uid":"1"}]}}`, policy, "herald-release"),
	)

	DescribeTable("every other request is denied", func(ctx SpecContext, attempt func(ctx context.Context) error, words ...string) {
		outcomeIs(attempt(ctx), words...)
	},
		Entry("such as marking a post as published", func(ctx context.Context) error {
			return changeStatus(ctx, ofRelease, withFinalizers(), `{"status":{"finished":true}}`)
		}, policy, "herald-release"),
		Entry("such as publishing", func(ctx context.Context) error { return ofRelease.Create(ctx, born("fresh"), client.DryRunAll) }, policy, "herald-release"),
		Entry("such as giving a team another plan", func(ctx context.Context) error { return change(ctx, ofRelease, acme(), richer) }, policy, "herald-release"),
		Entry("such as deleting a team", func(ctx context.Context) error { return ofRelease.Delete(ctx, acme(), client.DryRunAll) }, policy, "herald-release"),
		Entry("such as revoking a key", func(ctx context.Context) error { return change(ctx, ofRelease, key(), `{"spec":{"revoked":true}}`) }, policy, "herald-release"),
	)
})
