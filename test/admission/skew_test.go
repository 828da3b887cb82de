// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/managertest"
)

// posts is the name of the CustomResourceDefinition that the specs change.
const posts = "posts.social.herald.dev"

// definition is a version of the posts CRD.
type definition = apiextensionsv1.CustomResourceDefinitionVersion

// serve changes the posts CRD until the spec ends, or until restore is called.
func serve(ctx context.Context, change func(*definition)) (restore func(context.Context)) {
	GinkgoHelper()
	original := &apiextensionsv1.CustomResourceDefinition{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: posts}, original)).To(Succeed())
	write := func(ctx context.Context, spec *apiextensionsv1.CustomResourceDefinitionSpec) {
		GinkgoHelper()
		Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			now := &apiextensionsv1.CustomResourceDefinition{}
			if err := admin.Get(ctx, client.ObjectKey{Name: posts}, now); err != nil {
				return err
			}
			now.Spec = *spec.DeepCopy()
			return admin.Update(ctx, now)
		})).To(Succeed())
	}
	changed := original.DeepCopy()
	change(&changed.Spec.Versions[0])
	write(ctx, &changed.Spec)
	restore = func(ctx context.Context) { write(ctx, &original.Spec) }
	DeferCleanup(restore)
	return restore
}

// at applies change to the schema at a field path, passing through list items. It drops validation rules along the
// path, since they may use the field that changes.
func at(schema *apiextensionsv1.JSONSchemaProps, change func(*apiextensionsv1.JSONSchemaProps), path ...string) {
	schema.XValidations = nil
	if schema.Items != nil {
		at(schema.Items.Schema, change, path...)
		return
	}
	if len(path) == 0 {
		change(schema)
		return
	}
	field, ok := schema.Properties[path[0]]
	Expect(ok).To(BeTrue(), path[0])
	at(&field, change, path[1:]...)
	schema.Properties[path[0]] = field
}

// without removes a field from a definition, as if only a later version had it.
func without(field string, path ...string) func(*definition) {
	return func(d *definition) {
		at(d.Schema.OpenAPIV3Schema, func(s *apiextensionsv1.JSONSchemaProps) {
			Expect(s.Properties).To(HaveKey(field))
			delete(s.Properties, field)
		}, path...)
	}
}

// unstructuredPost returns a post with extra fields that this version does not know.
func unstructuredPost(p *v1alpha1.Post, extra map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	text, err := json.Marshal(p)
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{}
	Expect(json.Unmarshal(text, &object.Object)).To(Succeed())
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Post"))
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	Expect(err).NotTo(HaveOccurred())
	maps.Copy(spec, extra)
	object.Object["spec"] = spec
	return object
}

// strict rejects unknown fields, as kubectl does.
var strict = client.FieldValidation(metav1.FieldValidationStrict)

var _ = Describe("With another version's CRDs", Serial, func() {
	DescribeTable("both processes refuse to start, with the reason:", func(ctx SpecContext, change func(*definition), lacks string) {
		restore := serve(ctx, change)
		for _, p := range []*managertest.Process{
			installation.Manager(GinkgoT(), installation.Config(GinkgoT())), installation.APIServer(GinkgoT(), installation.APIServerConfig(GinkgoT())),
		} {
			Eventually(p.Done()).Should(BeClosed())
			Expect(p.ExitCode()).To(Equal(1))
			Expect(p.Log()).To(And(ContainSubstring("the served resource definition "+posts+" is older than this program: it lacks "+lacks),
				ContainSubstring("kubectl apply --server-side")))
		}
		restore(ctx)
		startManager()
	},
		Entry("a dropped field", without("onUnknownOutcome", "spec"), "spec.onUnknownOutcome"),
		Entry("a field of the record of delivery", without("attempt", "status", "targets"), "status.targets[].attempt"),
		Entry("the fields to select by", func(d *definition) { d.SelectableFields = nil }, "the selectable field .status.phase, the selectable field .status.finished"),
	)

	It("a manager without permission to read CRDs logs it, and works", func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "herald-manager"}}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
		whole := role.DeepCopy()
		DeferCleanup(func(ctx SpecContext) {
			whole.SetResourceVersion("")
			Expect(admin.Update(ctx, whole)).To(Succeed())
		})
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "customresourcedefinitions") })
		Expect(role.Rules).NotTo(HaveLen(len(whole.Rules)))
		Expect(admin.Update(ctx, role)).To(Succeed())
		w := startWebhook(ctx)
		Expect(w.manager.Log()).To(And(ContainSubstring("Continuing without a comparison of the resource definitions"), ContainSubstring("grant it the right")))
		p := post("unread")
		Expect(admin.Create(ctx, p)).To(Succeed())
		expectPosted(ctx, p)
	})

	It("a newer version is accepted, and its fields are preserved", func(ctx SpecContext) {
		serve(ctx, func(d *definition) {
			at(d.Schema.OpenAPIV3Schema, func(s *apiextensionsv1.JSONSchemaProps) {
				s.Properties["mood"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
				category := s.Properties["category"]
				category.Enum = append(category.Enum, apiextensionsv1.JSON{Raw: []byte(`"poll"`)})
				s.Properties["category"] = category
			}, "spec")
		})
		w := startWebhook(ctx)
		expectRefusals(ctx)
		before := calls(ctx)

		known := post("newer")
		applied := unstructuredPost(known, map[string]any{"mood": "cheerful"})
		Eventually(func() error { return admin.Create(ctx, applied.DeepCopy(), strict) }).Should(Succeed())
		expectPosted(ctx, known)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(applied), applied)).To(Succeed())
		Expect(applied.Object["spec"]).To(HaveKeyWithValue("mood", "cheerful"), "the manager's writes keep it")

		// Neither the webhook nor the reconciler interprets values that this version does not know.
		poll := unstructuredPost(post("poll"), map[string]any{"category": "poll"})
		Expect(admin.Create(ctx, poll.DeepCopy(), strict)).To(MatchError(ContainSubstring("x does not accept posts of category poll")))
		w.door.lock()
		Expect(admin.Create(ctx, poll, strict)).To(Succeed())
		expectInvalid(ctx, &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: poll.GetName(), Generation: 1}}, "x does not accept posts of category poll")
		Expect(calls(ctx)).To(Equal(before + 1))
	})

	Context("under a running manager", func() {
		// delivering starts a manager and waits until it has delivered something, which shows that it has started.
		delivering := func(ctx context.Context) *webhook {
			GinkgoHelper()
			w := startWebhook(ctx)
			first := post("first")
			Expect(admin.Create(ctx, first)).To(Succeed())
			expectPosted(ctx, first)
			return w
		}

		It("an older version terminates both processes, with the dropped fields", func(ctx SpecContext) {
			w := delivering(ctx)
			apiserver := installation.APIServer(GinkgoT(), installation.APIServerConfig(GinkgoT()))
			Eventually(apiserver.Log).Should(ContainSubstring("Serving"))
			restore := serve(ctx, without("onUnknownOutcome", "spec"))
			before := calls(ctx)
			p := post("pruned")
			p.Spec.OnUnknownOutcome = v1alpha1.OnUnknownRetry
			Eventually(func() error { return admin.Create(ctx, p.DeepCopy(), strict, client.DryRunAll) }).
				Should(MatchError(ContainSubstring(`unknown field "spec.onUnknownOutcome"`)), "kubectl apply")
			warnings.texts = nil
			Expect(admin.Create(ctx, p, client.FieldValidation(metav1.FieldValidationWarn))).To(Succeed())
			Expect(warnings.texts).To(ContainElement(ContainSubstring(`unknown field "spec.onUnknownOutcome"`)), "a tool's server-side apply")
			Expect(p.Spec.OnUnknownOutcome).To(BeEmpty())

			for _, process := range []*managertest.Process{w.manager.Process, apiserver} {
				Eventually(process.Done()).Should(BeClosed())
				Expect(process.ExitCode()).To(Equal(1))
				Expect(process.Log()).To(ContainSubstring(posts + " is older than this program: it lacks spec.onUnknownOutcome"))
			}
			restore(ctx)
			w.start()
			expectPosted(ctx, p)
			Expect(calls(ctx)).To(Equal(before+1), "an accepted post is delivered once")
		})

		DescribeTable("one that drops the delivery record prevents publishing:", func(ctx SpecContext, field string) {
			w := delivering(ctx)
			restore := serve(ctx, without(field, "status", "targets"))
			before := calls(ctx)
			// A dry run shows when the API server serves the new definition.
			Eventually(func(g Gomega) {
				probe := unstructuredPost(post("probe"), nil)
				probe.Object["status"] = map[string]any{"targets": []any{map[string]any{field: map[string]any{}}}}
				g.Expect(admin.Create(ctx, probe, strict, client.DryRunAll)).To(MatchError(ContainSubstring(`unknown field "status.targets[0].` + field)))
			}).Should(Succeed())
			p := post("dropped")
			Expect(admin.Create(ctx, p)).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(events(ctx, p)).To(ContainElement(And(HavePrefix("RecordDropped: "), ContainSubstring(posts+" that it serves is older than this program"))))
			}).Should(Succeed())
			Eventually(w.manager.Done()).Should(BeClosed())
			Expect(calls(ctx)).To(Equal(before))

			restore(ctx)
			w.start()
			expectPosted(ctx, p)
			Expect(calls(ctx)).To(Equal(before + 1))
			Expect(online(ctx, p.Spec.Targets[0].Caption)).To(Equal(1))
		},
			Entry("a claimed attempt", "attempt"),
			Entry("the result", "state"),
		)
	})
})

// events returns the reasons and messages of a post's events.
func events(ctx context.Context, p *v1alpha1.Post) (said []string) {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(admin.List(ctx, list, client.InNamespace(p.Namespace))).To(Succeed())
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.Name == p.Name {
			said = append(said, e.Reason+": "+e.Note)
		}
	}
	return said
}
