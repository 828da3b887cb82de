// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// managers returns the field managers that own any of a post's fields.
func managers(post *v1alpha1.Post) (names []string) {
	for _, entry := range post.ManagedFields {
		names = append(names, entry.Manager)
	}
	return names
}

var _ = Describe("the owners of a post's fields", func() {
	var (
		t      *team
		s      *bridge.Service
		person bridge.Caller
	)
	BeforeEach(func(ctx context.Context) {
		grantPeople(ctx)
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		s, person = serve(), bridge.Caller{Namespace: t.namespace, Author: "oidc:ada@example.com"}
	})
	spec := v1alpha1.PostSpec{
		Category: v1alpha1.CategoryText,
		Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: "Hello"}},
	}
	draft := func(ctx context.Context) *v1alpha1.Post {
		GinkgoHelper()
		kept := spec
		kept.Draft = true
		made, err := s.CreatePost(ctx, person, bridge.CreatePost{Spec: kept})
		Expect(err).NotTo(HaveOccurred())
		return t.stored(ctx, made.ID)
	}
	apply := func(ctx context.Context, post *v1alpha1.Post, fields map[string]any) *v1alpha1.Post {
		GinkgoHelper()
		file := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
		file.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Post"))
		file.SetNamespace(post.Namespace)
		file.SetName(post.Name)
		Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(file), client.FieldOwner("gitops"), client.ForceOwnership)).To(Succeed())
		return t.stored(ctx, post.Name)
	}
	schedule := func(ctx context.Context, post *v1alpha1.Post) *v1alpha1.Post {
		GinkgoHelper()
		at := time.Now().Add(time.Hour)
		_, err := s.Publish(ctx, person, post.Name, bridge.Version(post), spec, &at)
		Expect(err).NotTo(HaveOccurred())
		return t.stored(ctx, post.Name)
	}

	It("are released by the apiserver's first change, and acquired again when a tool applies the post", func(ctx SpecContext) {
		scheduled := schedule(ctx, draft(ctx))
		Expect(managers(scheduled)).To(BeEmpty())
		applied := apply(ctx, scheduled, map[string]any{"scheduledAt": metav1.NewTime(time.Now().Add(2 * time.Hour)).UTC().Format(time.RFC3339)})
		Expect(managers(applied)).To(ConsistOf("gitops", "before-first-apply"))
		Expect(applied.Spec.ScheduledAt.Time).To(BeTemporally("~", time.Now().Add(2*time.Hour), time.Minute))
	})

	It("remain while a tool applies the post, which compares them", func(ctx SpecContext) {
		Expect(managers(schedule(ctx, apply(ctx, draft(ctx), map[string]any{"onUnknownOutcome": "fail"})))).To(ContainElement("gitops"))
	})

	It("remain when the post is cancelled, for the warning with the user's name", func(ctx SpecContext) {
		post := draft(ctx)
		Expect(s.CancelPost(ctx, person, post.Name)).To(Succeed())
		Expect(managers(t.stored(ctx, post.Name))).To(ContainElement("herald-apiserver"))
	})
})
