// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// These specs cover the metadata of the objects that the ResourceQuota counts. Without a limit on it, a few thousand
// objects could fill etcd.
var _ = Describe("The metadata of a team's objects", Ordered, func() {
	const kib = 1 << 10
	much := func(bytes int) map[string]string {
		return map[string]string{"example.com/much": strings.Repeat("a", bytes)}
	}
	many := func(count int) map[string]string {
		labels := map[string]string{}
		for i := range count {
			labels[fmt.Sprintf("example.com/%060d", i)] = strings.Repeat("a", 63)
		}
		return labels
	}
	media := func(edit func(*v1alpha1.Media)) client.Object {
		return verified(func(m *v1alpha1.Media) {
			m.Name, m.Annotations, m.Finalizers, m.Labels = "around", nil, nil, nil
			edit(m)
		})
	}
	annotated := func(o client.Object, bytes int) client.Object {
		o.SetAnnotations(much(bytes))
		return o
	}
	large := media(func(*v1alpha1.Media) {}).DeepCopyObject().(client.Object)
	large.SetName("large")

	BeforeAll(func(ctx SpecContext) {
		Expect(admin.Create(ctx, large)).To(Succeed())
		tooMuch := func() error {
			return admin.Create(ctx, annotated(media(func(*v1alpha1.Media) {}), 20*kib), client.DryRunAll)
		}
		Eventually(tooMuch).Should(MatchError(ContainSubstring("herald-metadata")))
	})

	DescribeTable("is limited: a user creates", func(ctx SpecContext, o client.Object, words ...string) {
		outcomeIs(admin.Create(ctx, o, client.DryRunAll), words...)
	},
		Entry("a Media with what kubectl and GitOps tools write", annotated(media(func(*v1alpha1.Media) {}), 15*kib), nobody),
		Entry("a Media with more", annotated(media(func(*v1alpha1.Media) {}), 17*kib), policy, "16 KiB", "annotations"),
		Entry("a Connection with more", annotated(connected(ofTeam), 17*kib), policy, "16 KiB"),
		Entry("an APIKey with more", annotated(keyOf("around", "ada"), 17*kib), policy, "16 KiB"),
		Entry("an OAuthGrant with more", annotated(grant(ofTeam), 17*kib), policy, "16 KiB"),
		Entry("a Post with large annotations, which the webhook limits", annotated(born("around"), 200*kib), nobody),
		Entry("a Media with as many labels as fit", media(func(m *v1alpha1.Media) { m.Labels = many(60) }), nobody),
		Entry("a Post with more labels", func() client.Object {
			p := born("around")
			p.Labels = many(130)
			return p
		}(), policy, "labels"),
		Entry("labels of two bytes per letter", media(func(m *v1alpha1.Media) {
			m.Annotations = map[string]string{"note": strings.Repeat("ü", 9*kib)}
		}), policy, "16 KiB"),
		Entry("many finalizers", media(func(m *v1alpha1.Media) {
			for i := range 300 {
				m.Finalizers = append(m.Finalizers, fmt.Sprintf("example.com/%060d", i))
			}
		}), policy, "finalizers"),
		Entry("an owner with a very long name", media(func(m *v1alpha1.Media) {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: strings.Repeat("a", 17*kib), UID: "1"}}
		}), policy, "ownerReferences"),
	)

	It("is limited in updates", func(ctx SpecContext) {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"note":%q}}}`, strings.Repeat("a", 17*kib))
		outcomeIs(change(ctx, admin, large, patch), policy, "16 KiB")
		outcomeIs(change(ctx, admin, large, `{"metadata":{"annotations":{"note":"short"}}}`), nobody)
	})

	It("leaves space for Herald's own entries", func(ctx SpecContext) {
		full := annotated(media(func(m *v1alpha1.Media) { m.Name = "full" }), 16*kib-100)
		Expect(admin.Create(ctx, full)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, full)).To(Succeed()) })
		finalizer := fmt.Sprintf(`{"metadata":{"finalizers":[%q],"annotations":{"social.herald.dev/probe-requested":%q}}}`, v1alpha1.MediaFileFinalizer, strings.Repeat("a", 100))
		outcomeIs(change(ctx, admin, full, finalizer), policy, "16 KiB")
		err := change(ctx, manager, full, finalizer)
		Expect(fmt.Sprint(err)).NotTo(ContainSubstring("herald-metadata"))
	})

	It("may keep a size that already exceeds the limit", func(ctx SpecContext) {
		held := media(func(m *v1alpha1.Media) { m.Name = "held"; m.Finalizers = []string{"example.com/a", "example.com/b"} })
		withoutPolicy(ctx, "herald-metadata", func() {
			Expect(admin.Create(ctx, annotated(held, 100*kib))).To(Succeed())
		})
		outcomeIs(change(ctx, admin, held, `{"spec":{"whenUnused":"keep"},"metadata":{"finalizers":["example.com/a"]}}`), nobody)
		outcomeIs(change(ctx, admin, held, `{"metadata":{"labels":{"one":"more"}}}`), policy, "16 KiB")
		outcomeIs(change(ctx, admin, held, `{"metadata":{"finalizers":null}}`), nobody)
	})

	It("has a limited number of field managers, each with a list of owned fields", func(ctx SpecContext) {
		apply := func(who string) error {
			return admin.Patch(ctx, &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: "large"}}, client.RawPatch(types.ApplyPatchType, []byte(
				`{"apiVersion":"social.herald.dev/v1alpha1","kind":"Media","metadata":{"name":"large","namespace":"`+ofTeam+`","labels":{"shared":"a"}}}`)),
				client.FieldOwner(who))
		}
		for i := range 15 { // plus the first one
			Expect(apply(fmt.Sprintf("tool-%d", i))).To(Succeed())
		}
		outcomeIs(apply("one-more"), policy, "field managers")
		outcomeIs(apply("tool-1"), nobody)
	})
})

func policyBinding(name string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// withoutPolicy runs do while a policy is not bound.
func withoutPolicy(ctx context.Context, name string, do func()) {
	GinkgoHelper()
	unbound := policyBinding(name)
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(unbound), unbound)).To(Succeed())
	bound := policyBinding(name)
	bound.Labels, bound.Spec = unbound.Labels, unbound.Spec
	Expect(admin.Delete(ctx, unbound)).To(Succeed())
	probe := verified(func(m *v1alpha1.Media) {
		m.Name, m.Annotations = "probe", map[string]string{"a": strings.Repeat("a", 100<<10)}
	})
	Eventually(func() error { return admin.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).Should(Succeed())
	do()
	Expect(admin.Create(ctx, bound)).To(Succeed())
	Eventually(func() error { return admin.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).ShouldNot(Succeed())
}
