// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/suite"
)

// fromAPI returns a post as the apiserver creates it.
func fromAPI(origin string) *v1alpha1.Post {
	p := validPost()
	p.Labels = map[string]string{v1alpha1.OriginLabel: origin}
	return p
}

// managers returns the managers that own fields of an object.
func managers(object client.Object) []string {
	var names []string
	for _, entry := range object.GetManagedFields() {
		names = append(names, entry.Manager)
	}
	return names
}

var _ = Describe("The policy about posts that are not applied", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		kind := schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}
		if _, err := k8s.RESTMapper().RESTMapping(kind, "v1"); err != nil {
			Skip("this Kubernetes has no MutatingAdmissionPolicy; it comes with 1.36")
		}
		Expect(cluster.ApplyFolders(ctx, k8s, filepath.Join(envtest.Root(), "config", "mutation"))).To(Succeed())
		// The policy takes effect after a moment. For up to five seconds after it starts or gets new CRDs, an API
		// server responds with 503 to requests that such a policy covers.
		Eventually(func(g Gomega) {
			p := fromAPI(v1alpha1.OriginAPI)
			g.Expect(k8s.Create(ctx, p)).To(Succeed())
			g.Expect(managers(p)).To(BeEmpty())
		}).Should(Succeed())
	})

	DescribeTable("decides at creation", func(ctx SpecContext, post *v1alpha1.Post, tracked bool) {
		Expect(k8s.Create(ctx, post, client.FieldOwner("creator"))).To(Succeed())
		Expect(post.ManagedFields != nil).To(Equal(tracked))
		post.Status = v1alpha1.PostStatus{Phase: v1alpha1.PhaseScheduled, ObservedGeneration: 1}
		Expect(k8s.Status().Update(ctx, post, client.FieldOwner("herald"))).To(Succeed())
		Expect(post.ManagedFields != nil).To(Equal(tracked), "a status write does not start tracking")
	},
		Entry("a post from the REST API or an agent is not tracked", fromAPI(v1alpha1.OriginAPI), false),
		Entry("a post from the web application is not tracked", fromAPI(v1alpha1.OriginWeb), false),
		Entry("a post without an origin is tracked, because tools compare its fields", validPost(), true),
	)

	It("is needed, because Kubernetes also tracks objects whose creator opts out", func(ctx SpecContext) {
		post := validPost()
		post.ManagedFields = []metav1.ManagedFieldsEntry{{}} // stops the tracking when it is part of an update
		Expect(k8s.Create(ctx, post, client.FieldOwner("creator"))).To(Succeed())
		Expect(managers(post)).To(ConsistOf("creator"))
	})

	It("does not affect an applied post, whatever its label", func(ctx SpecContext) {
		Expect(managers(serverSideApplied(ctx, fromAPI(v1alpha1.OriginAPI), "gitops"))).To(ContainElement("gitops"))
	})

	It("lets a tool apply an untracked post, and own the applied fields from then on", func(ctx SpecContext) {
		post := fromAPI(v1alpha1.OriginAPI)
		post.Spec.ScheduledAt = future
		Expect(k8s.Create(ctx, post)).To(Succeed())
		later := v1alpha1.NewTimePtr(future.Add(time.Hour))

		same := fromAPI(v1alpha1.OriginAPI)
		same.Name, same.Spec.ScheduledAt = post.Name, later
		taken := serverSideApplied(ctx, same, "gitops")
		Expect(managers(taken)).To(ConsistOf("gitops", "before-first-apply"))
		Expect(taken.Spec.ScheduledAt.Equal(later)).To(BeTrue(), "got %v", taken.Spec.ScheduledAt)
		Expect(taken.Spec.Targets).To(HaveLen(1))
	})

	It("saves a fifth of a post's stored bytes", func(ctx SpecContext) {
		size := func(p *v1alpha1.Post) int {
			Expect(k8s.Create(ctx, p, client.FieldOwner("herald-apiserver"))).To(Succeed())
			p.Status = v1alpha1.PostStatus{
				Phase: v1alpha1.PhasePosted, Finished: true, Platforms: "x", ObservedGeneration: 1,
				Targets: []v1alpha1.TargetStatus{postedTo(0, 0)},
			}
			Expect(k8s.Status().Update(ctx, p, client.FieldOwner("herald"))).To(Succeed())
			return len(suite.Must(json.Marshal(p)))
		}
		with, without := size(validPost()), size(fromAPI(v1alpha1.OriginAPI))
		AddReportEntry("bytes", fmt.Sprintf("tracked %d, not tracked %d", with, without))
		Expect(without).To(BeNumerically("<", with*4/5))
	})
})

var _ = DescribeTable("a Post's status has one owner as a whole", func(ctx SpecContext, earlier string) {
	post := validPost()
	Expect(k8s.Create(ctx, post, client.FieldOwner("creator"))).To(Succeed())
	claimed(post)
	Expect(k8s.Status().Update(ctx, post, client.FieldOwner("herald"))).To(Succeed())
	if earlier != "" {
		for i := range post.ManagedFields {
			if entry := &post.ManagedFields[i]; entry.Subresource == "status" {
				entry.FieldsV1 = metav1.NewFieldsV1(earlier)
			}
		}
		Expect(k8s.Update(ctx, post, client.FieldOwner("creator"))).To(Succeed())
	}
	closed(v1alpha1.OutcomePosted, v1alpha1.TargetPosted, "7")(post)
	Expect(k8s.Status().Update(ctx, post, client.FieldOwner("herald"))).To(Succeed())

	var owned []string
	for _, entry := range post.ManagedFields {
		if entry.Subresource == "status" {
			owned = append(owned, entry.Manager+": "+entry.FieldsV1.GetRawString())
		}
	}
	Expect(owned).To(ConsistOf(`herald: {"f:status":{}}`))
},
	Entry("because only the manager writes it, and its field list is as long as the status", ""),
	Entry("also if an earlier version owned its fields one by one",
		`{"f:status":{"f:phase":{},"f:targets":{".":{},"k:{\"index\":0}":{".":{},"f:index":{},"f:phase":{},"f:state":{}}}}}`),
)

// serverSideApplied applies a post by server-side apply, and returns the result.
func serverSideApplied(ctx SpecContext, post *v1alpha1.Post, manager string) *v1alpha1.Post {
	GinkgoHelper()
	data := suite.Must(json.Marshal(post))
	object := &unstructured.Unstructured{}
	Expect(json.Unmarshal(data, &object.Object)).To(Succeed())
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Post"))
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	Expect(k8s.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
	found := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: post.Namespace, Name: post.Name}}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(found), found)).To(Succeed())
	return found
}
