// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

var _ = Describe("A Team that v0.1.0 stored, with spec.ttlAfterFinished", Serial, func() {
	// strict validates as kubectl does.
	const strict = client.FieldValidation(metav1.FieldValidationStrict)

	// older stores objects under the CRD of v0.1.0, where the field had a default.
	older := func(ctx SpecContext, store func()) {
		GinkgoHelper()
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		Expect(k8s.Get(ctx, client.ObjectKey{Name: "teams.social.herald.dev"}, crd)).To(Succeed())
		now := crd.DeepCopy()
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		Expect(err).NotTo(HaveOccurred())
		field := map[string]any{"type": "string", "default": "2160h"}
		Expect(unstructured.SetNestedMap(versions[0].(map[string]any), field, "schema", "openAPIV3Schema", "properties", "spec", "properties", "ttlAfterFinished")).To(Succeed())
		Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
		Expect(k8s.Update(ctx, crd)).To(Succeed())
		served := func(is bool) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				probe := retained(map[string]any{})
				g.Expect(k8s.Create(ctx, probe, client.DryRunAll)).To(Succeed())
				_, has, _ := unstructured.NestedString(probe.Object, "spec", "ttlAfterFinished")
				g.Expect(has).To(Equal(is))
			}).WithTimeout(30 * time.Second).Should(Succeed())
		}
		served(true)
		store()
		now.SetResourceVersion(crd.GetResourceVersion())
		Expect(k8s.Update(ctx, now)).To(Succeed())
		served(false)
	}

	// manifest returns a Team as stored in Git.
	manifest := func(ttl string) *unstructured.Unstructured {
		team := retained(map[string]any{"inCluster": "48h"})
		Expect(unstructured.SetNestedField(team.Object, "Acme", "spec", "displayName")).To(Succeed())
		Expect(unstructured.SetNestedField(team.Object, ttl, "spec", "ttlAfterFinished")).To(Succeed())
		return team
	}
	// apply applies a manifest by server-side apply.
	apply := func(ctx SpecContext, file *unstructured.Unstructured) error {
		text, err := json.Marshal(file)
		Expect(err).NotTo(HaveOccurred())
		return k8s.Patch(ctx, file.DeepCopy(), client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("git"))
	}

	It("keeps all other fields, and is written and applied without the field", func(ctx SpecContext) {
		created, applied := manifest("720h"), manifest("8760h")
		older(ctx, func() {
			Expect(k8s.Create(ctx, created.DeepCopy(), strict)).To(Succeed())
			Expect(apply(ctx, applied)).To(Succeed())
		})
		for _, file := range []*unstructured.Unstructured{created, applied} {
			stored := &v1alpha1.Team{}
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(file), stored)).To(Succeed())
			Expect(stored.Spec.Namespace).To(Equal("keeps"))
			Expect(stored.Spec.DisplayName).To(Equal("Acme"))
			Expect(stored.Spec.Retention).To(Equal(v1alpha1.TeamRetention{InCluster: &v1alpha1.Duration{Duration: 48 * time.Hour}}),
				"the installation's default applies to the archive")
			stored.Status.ObservedGeneration = stored.Generation
			Expect(k8s.Status().Update(ctx, stored)).To(Succeed(), "the manager writes it")
		}

		removal := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ttlAfterFinished":null,"retention":{"archived":"720h"}}}`))
		Expect(k8s.Patch(ctx, created, removal, strict)).To(Succeed(), "kubectl apply of a file that replaces the field")
		unstructured.RemoveNestedField(applied.Object, "spec", "ttlAfterFinished")
		Expect(unstructured.SetNestedField(applied.Object, "8760h", "spec", "retention", "archived")).To(Succeed())
		Expect(apply(ctx, applied)).To(Succeed(), "server-side apply of such a file")
		for file, want := range map[*unstructured.Unstructured]time.Duration{created: 720 * time.Hour, applied: 8760 * time.Hour} {
			stored := &v1alpha1.Team{}
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(file), stored)).To(Succeed())
			Expect(stored.Spec.Retention.Archived).To(HaveValue(Equal(v1alpha1.Duration{Duration: want})))
		}
	})

	It("is rejected with the field's name if it is applied again, and dropped by clients that do not validate", func(ctx SpecContext) {
		file := manifest("720h")
		Expect(k8s.Create(ctx, file.DeepCopy(), strict)).To(MatchError(ContainSubstring(`unknown field "spec.ttlAfterFinished"`)), "kubectl apply")
		Expect(apply(ctx, file)).To(MatchError(ContainSubstring(".spec.ttlAfterFinished: field not declared in schema")), "server-side apply")
		Expect(k8s.Create(ctx, file)).To(Succeed())
		spec, _, err := unstructured.NestedMap(file.Object, "spec")
		Expect(err).NotTo(HaveOccurred())
		Expect(spec).NotTo(HaveKey("ttlAfterFinished"))
		Expect(spec).To(HaveKeyWithValue("displayName", "Acme"))
	})
})
