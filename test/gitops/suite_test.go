// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/test/suite"
)

func TestGitOps(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "GitOps")
}

var k8s client.Client

var _ = BeforeSuite(func(ctx SpecContext) {
	k8s = suite.Start().Client
	Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})).To(Succeed())
})

// kind is a kind that Herald reconciles.
type kind struct {
	object client.Object
	// status has its conditions and observedGeneration.
	status func() (*[]metav1.Condition, *int64)
	// edit makes a new generation.
	edit func()
}

func post() kind {
	p := &v1alpha1.Post{Spec: v1alpha1.PostSpec{
		Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello"}},
	}}
	return kind{
		p, func() (*[]metav1.Condition, *int64) { return &p.Status.Conditions, &p.Status.ObservedGeneration },
		func() { p.Spec.Targets[0].Caption = "good morning" },
	}
}

func connection() kind {
	c := &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "1", CredentialsSecretRef: v1alpha1.LocalReference{Name: "x"}}}
	return kind{
		c, func() (*[]metav1.Condition, *int64) { return &c.Status.Conditions, &c.Status.ObservedGeneration },
		func() { c.Spec.Disabled = true },
	}
}

func media() kind {
	m := &v1alpha1.Media{Spec: v1alpha1.MediaSpec{FileName: "a.jpg", MimeType: v1alpha1.MimeJPEG, Source: &v1alpha1.MediaSource{URL: "https://example.com/a.jpg"}}}
	return kind{
		m, func() (*[]metav1.Condition, *int64) { return &m.Status.Conditions, &m.Status.ObservedGeneration },
		func() { m.Spec.WhenUnused = v1alpha1.DeleteWhenUnused },
	}
}

func team() kind {
	t := &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Namespace: "elsewhere"}}
	return kind{
		t, func() (*[]metav1.Condition, *int64) { return &t.Status.Conditions, &t.Status.ObservedGeneration },
		func() { t.Spec.Suspend = true },
	}
}

func key() kind {
	k := &v1alpha1.APIKey{}
	return kind{
		k, func() (*[]metav1.Condition, *int64) { return &k.Status.Conditions, &k.Status.ObservedGeneration },
		func() { k.Spec.Description = "of the newsroom" },
	}
}

var _ = Describe("kstatus, by which Flux and kubectl wait,", func() {
	judged := func(ctx SpecContext, object client.Object) string {
		GinkgoHelper()
		gvk := suite.Must(apiutil.GVKForObject(object, k8s.Scheme()))
		var stored unstructured.Unstructured
		stored.SetGroupVersionKind(gvk)
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), &stored)).To(Succeed())
		result := suite.Must(kstatus.Compute(&stored))
		Expect(argo(&stored)).To(Equal(map[kstatus.Status]string{
			kstatus.InProgressStatus: "Progressing", kstatus.CurrentStatus: "Healthy", kstatus.FailedStatus: "Degraded",
		}[result.Status]), "Argo CD judges otherwise")
		return result.Status.String()
	}
	DescribeTable("considers an object in progress until a manager has processed it, and then uses the manager's status:", func(ctx SpecContext, made func() kind, namespace string) {
		k := made()
		k.object.SetName("judged")
		k.object.SetNamespace(namespace)
		Expect(k8s.Create(ctx, k.object)).To(Succeed())
		Expect(judged(ctx, k.object)).To(Equal("InProgress"), "the manager has not seen the object")

		for _, row := range []struct {
			summary conditions.Summary
			want    string
		}{
			{conditions.Summary{Ready: true, Reason: "Good", Progress: conditions.Settled}, "Current"},
			{conditions.Summary{Reason: "Waits", Progress: conditions.Underway}, "InProgress"},
			{conditions.Summary{Reason: "Broken", Progress: conditions.Stuck}, "Failed"},
			{conditions.Summary{Ready: true, Reason: "Good", Progress: conditions.Settled}, "Current"},
		} {
			list, generation := k.status()
			*generation = k.object.GetGeneration()
			conditions.Apply(list, row.summary, *generation, time.Now())
			Expect(k8s.Status().Update(ctx, k.object)).To(Succeed())
			Expect(judged(ctx, k.object)).To(Equal(row.want), row.summary.Reason)
		}
		k.edit()
		Expect(k8s.Update(ctx, k.object)).To(Succeed())
		Expect(judged(ctx, k.object)).To(Equal("InProgress"), "the manager has not seen the update")
	},
		Entry("a Post", post, "team"), Entry("a Connection", connection, "team"), Entry("a Media", media, "team"),
		Entry("an APIKey", key, "team"), Entry("a Team", team, ""),
	)
})
