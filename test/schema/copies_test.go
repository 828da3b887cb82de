// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
)

// The manager's cache strips the text from large posts. The specs try every way to write such a copy.
var _ = Describe("A copy of a Post without its texts", func() {
	var post, kept *v1alpha1.Post
	BeforeEach(func(ctx SpecContext) {
		post = validPost()
		post.Finalizers = []string{"example.com/other"}
		post.Annotations = map[string]string{"example.com/note": "kept"}
		post.Spec.Draft = true
		captionsOf(100_000)(&post.Spec)
		Expect(k8s.Create(ctx, post)).To(Succeed())
		kept = &v1alpha1.Post{}
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(post), kept)).To(Succeed())
		Expect(kubeclient.TransformForCache(kept)).Error().NotTo(HaveOccurred())
		Expect(kubeclient.IsComplete(kept)).To(BeFalse())
		Expect(kept.Spec.Targets[0].Caption).To(BeEmpty())
	})
	AfterEach(func(ctx SpecContext) {
		now := &v1alpha1.Post{}
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(post), now)).To(Succeed())
		Expect(now.Spec).To(Equal(post.Spec), "the post is unchanged")
		Expect(now.Annotations).To(Equal(post.Annotations))
		Expect(kubeclient.IsComplete(now)).To(BeTrue())
		now.Finalizers = nil
		Expect(k8s.Update(ctx, now)).To(Succeed())
		Expect(k8s.Delete(ctx, now)).To(Succeed())
	})

	const refusal = "metadata.annotations"
	It("is rejected as a replacement of the object", func(ctx SpecContext) {
		refused(k8s.Update(ctx, kept), refusal)
	})
	It("is rejected under another name", func(ctx SpecContext) {
		other := kept.DeepCopy()
		other.Name, other.ResourceVersion, other.UID = other.Name+"-copy", "", ""
		refused(k8s.Create(ctx, other), refusal)
	})
	It("is rejected by apply", func(ctx SpecContext) {
		applied := kept.DeepCopy()
		applied.ResourceVersion, applied.Status = "", v1alpha1.PostStatus{}
		applied.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Post"))
		refused(k8s.Patch(ctx, applied, client.Apply, client.FieldOwner("herald"), client.ForceOwnership), refusal) //nolint:staticcheck // the deprecated way is one too
	})
	It("is rejected as an update of the object", func(ctx SpecContext) {
		refused(k8s.Patch(ctx, kept.DeepCopy(), client.MergeFrom(post)), refusal)
	})
	It("patches only its own changes", func(ctx SpecContext) {
		base := kept.DeepCopy()
		controllerutil.AddFinalizer(kept, v1alpha1.DeliveryFinalizer)
		Expect(k8s.Patch(ctx, kept, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))).To(Succeed())
		Expect(kept.Spec).To(Equal(post.Spec), "the response contains the whole post")
		Expect(kept.Finalizers).To(ConsistOf("example.com/other", v1alpha1.DeliveryFinalizer))
	})
	It("updates only the status", func(ctx SpecContext) {
		kept.Status.Phase = v1alpha1.PhaseDraft
		Expect(k8s.Status().Update(ctx, kept)).To(Succeed())
		patched := kept.DeepCopy()
		patched.Status.Platforms = strings.Repeat("x", 10)
		Expect(k8s.Status().Patch(ctx, patched, client.MergeFrom(kept))).To(Succeed())
		Expect(k8s.Status().Patch(ctx, kept.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"draft"}}`)))).To(Succeed())
	})
})
