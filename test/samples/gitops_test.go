// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/chart"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/suite"
)

// gitopsPage returns docs/gitops.md.
func gitopsPage() string {
	GinkgoHelper()
	text := suite.Must(os.ReadFile(filepath.Join(envtest.Root(), "docs", "gitops.md")))
	return string(text)
}

// blocks returns the page's YAML blocks without their common indentation.
func blocks() (found []string) {
	GinkgoHelper()
	for _, fence := range fences.FindAllStringSubmatch(gitopsPage(), -1) {
		if fence[1] != "yaml" {
			continue
		}
		lines := strings.Split(fence[2], "\n")
		indent := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
		for i, line := range lines {
			lines[i] = line[min(indent, len(line)-len(strings.TrimLeft(line, " "))):]
		}
		found = append(found, strings.Join(lines, "\n"))
	}
	return found
}

// required are the required fields of other projects' kinds, as of November 2026. "|" separates alternatives. The API
// server here does not have these kinds.
var required = map[string][]string{
	"source.toolkit.fluxcd.io/v1 OCIRepository":    {"spec.interval", "spec.url"},
	"helm.toolkit.fluxcd.io/v2 HelmRelease":        {"spec.interval", "spec.chartRef.kind|spec.chart.spec.chart", "spec.chartRef.name|spec.chart.spec.sourceRef.name"},
	"kustomize.toolkit.fluxcd.io/v1 Kustomization": {"spec.interval", "spec.prune", "spec.sourceRef.kind", "spec.sourceRef.name"},
	"argoproj.io/v1alpha1 Application":             {"spec.project", "spec.destination.server", "spec.source.repoURL|spec.sources"},
	"bitnami.com/v1alpha1 SealedSecret":            {"spec.encryptedData"},
	"external-secrets.io/v1 ExternalSecret":        {"spec.secretStoreRef.name", "spec.secretStoreRef.kind", "spec.target.name", "spec.data"},
}

// has reports whether a field is set.
func has(object *unstructured.Unstructured, path string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
	return found && err == nil
}

// validate applies objects of known kinds as a dry run, and checks that the others have the required fields.
func validate(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	kind := object.GetAPIVersion() + " " + object.GetKind()
	if object.GetAPIVersion() == "v1" || object.GetAPIVersion() == v1alpha1.GroupVersion.String() {
		text, err := json.Marshal(object)
		Expect(err).NotTo(HaveOccurred())
		err = admin.Patch(ctx, object.DeepCopy(), client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("page"), client.ForceOwnership,
			client.FieldValidation(metav1.FieldValidationStrict), client.DryRunAll)
		Expect(err).NotTo(HaveOccurred(), "%s %s", kind, object.GetName())
		return
	}
	fields, known := required[kind]
	Expect(known).To(BeTrue(), "unknown kind %q in the page", kind)
	for _, alternatives := range fields {
		met := false
		for path := range strings.SplitSeq(alternatives, "|") {
			met = met || has(object, path)
		}
		Expect(met).To(BeTrue(), "%s %s has no %s", kind, object.GetName(), alternatives)
	}
	for _, path := range [][]string{{"spec", "values"}, {"spec", "source", "helm", "valuesObject"}} {
		if values, found, _ := unstructured.NestedMap(object.Object, path...); found {
			text := suite.Must(yaml.Marshal(values))
			render(ctx, string(text))
		}
	}
}

// render renders the chart with the given values.
func render(ctx context.Context, values string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "values.yaml")
	Expect(os.WriteFile(file, []byte(values), 0o600)).To(Succeed())
	_, err := chart.Render(ctx, "herald", "herald-system", file)
	Expect(err).NotTo(HaveOccurred(), values)
}

var _ = Describe("docs/gitops.md", func() {
	It("has valid YAML", func(ctx SpecContext) {
		acme := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-acme", Labels: map[string]string{v1alpha1.TeamLabel: "acme"}}}
		Expect(client.IgnoreAlreadyExists(admin.Create(ctx, acme))).To(Succeed())
		seen := map[string]bool{}
		for _, block := range blocks() {
			objects, err := cluster.ParseObjects([]byte(block))
			if err != nil || len(objects) == 0 {
				// ParseObjects only parses objects; a block without a kind is a values file.
				render(ctx, block)
				seen["values"] = true
				continue
			}
			for _, object := range objects {
				validate(ctx, object)
				seen[object.GetKind()] = true
			}
		}
		for kind := range required {
			_, name, _ := strings.Cut(kind, " ")
			Expect(seen).To(HaveKey(name))
		}
		for _, kind := range []string{"values", "Post", "Connection", "Secret", "Media"} {
			Expect(seen).To(HaveKey(kind))
		}
	})

	It("publishes its first post", func(ctx SpecContext) {
		for _, block := range blocks() {
			objects, err := cluster.ParseObjects([]byte(block))
			if err != nil || len(objects) == 0 || objects[0].GetKind() != "Post" {
				continue
			}
			first := apply(ctx, objects[0], "page")
			expectCondition(ctx, first, v1alpha1.ConditionPublished, v1alpha1.ReasonPosted)

			By("editing it afterwards, for which Flux with force would recreate the post")
			edited := objects[0].DeepCopy()
			Expect(unstructured.SetNestedSlice(edited.Object, []any{map[string]any{
				"connectionRef": map[string]any{"name": "demo-x"}, "caption": "Something else",
			}}, "spec", "targets")).To(Succeed())
			text, err := json.Marshal(edited)
			Expect(err).NotTo(HaveOccurred())
			err = admin.Patch(ctx, edited, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("page"))
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring("the spec is frozen")))
			return
		}
		Fail("the page has no post")
	})

	It("describes a manifest reapplied after its retention", func(ctx SpecContext) {
		late := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: demo, Name: "late"}, Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(time.Now().Add(-2 * time.Hour)),
			Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "demo-x"}, Caption: "long ago"}},
		}}
		before := published(ctx)
		Expect(admin.Create(ctx, late)).To(Succeed())
		expectCondition(ctx, late, v1alpha1.ConditionPublished, v1alpha1.ReasonMissedSchedule)
		Expect(published(ctx)).To(Equal(before))
	})

	It("has the expressions and scripts of config/gitops, and valid links", func() {
		page := gitopsPage()
		shipped := suite.Must(os.ReadFile(filepath.Join(envtest.Root(), "config", "gitops", "flux-published.yaml")))
		for _, expression := range regexp.MustCompile(`(?m)^  (failed|current): .*$`).FindAllString(string(shipped), -1) {
			Expect(page).To(ContainSubstring(strings.TrimSpace(expression)))
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(page, -1) {
			Expect(os.Stat(filepath.Join(envtest.Root(), "docs", link[1]))).Error().NotTo(HaveOccurred())
		}
		Expect(page).To(ContainSubstring("config/gitops/argocd-health.lua"))
	})
})

// expectCondition waits until the post's condition has the given reason.
func expectCondition(ctx context.Context, object client.Object, kind, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		now := &v1alpha1.Post{}
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), now)).To(Succeed())
		condition := meta.FindStatusCondition(now.Status.Conditions, kind)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(reason), condition.Message)
	}).Should(Succeed())
}
