// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package samples_test applies the manifests that users copy, as GitOps tools do, to a real API server with Herald's
// webhook and manager: config/samples, including set/, which is applied with Flux's library, and the YAML in
// docs/gitops.md.
package samples_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/managertest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/storetest"
	"github.com/herald-social/herald/test/suite"
)

func TestSamples(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "What people copy")
}

// demo is the namespace of the demo team.
const demo = "herald-demo"

var (
	env      *envtest.Environment
	admin    client.Client
	platform sandboxtest.Client
	bucket   store.Config
)

var _ = BeforeSuite(func(ctx SpecContext) {
	env = suite.Start()
	admin = env.Client
	config := filepath.Join(envtest.Root(), "config")
	Expect(cluster.ApplyFolders(ctx, admin, filepath.Join(config, "rbac"))).To(Succeed())
	platform = sandboxtest.Start(GinkgoT())

	bucket = storetest.Start(GinkgoT())
	installation := managertest.Installation{Env: env, Program: managertest.Build(GinkgoT()), SandboxURL: platform.URL, Store: bucket}
	manager := installation.Config(GinkgoT())
	Expect(cluster.ApplyWebhook(ctx, admin, filepath.Join(config, "webhook", "webhook.yaml"), "https://"+manager.Webhook.BindAddress)).To(Succeed())
	installation.Manager(GinkgoT(), manager)
	applyDemo(ctx)
	Eventually(func() error {
		wrong := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: demo, Name: "wrong"}, Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText,
			Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "demo-youtube"}, Caption: "no platform of text"}},
		}}
		return admin.Create(ctx, wrong, client.DryRunAll)
	}).Should(MatchError(ContainSubstring("admission webhook")), "the webhook serves")
})

// applyDemo applies the demo team and waits until its accounts are connected.
func applyDemo(ctx context.Context) {
	GinkgoHelper()
	data := suite.Must(os.ReadFile(filepath.Join(envtest.Root(), "charts", "herald", "files", "demo.yaml")))
	objects := suite.Must(cluster.ParseObjects(data))
	for _, object := range objects {
		apply(ctx, object, "suite")
	}
	Eventually(func(g Gomega) {
		connections := &v1alpha1.ConnectionList{}
		g.Expect(admin.List(ctx, connections, client.InNamespace(demo))).To(Succeed())
		for i := range connections.Items {
			c := &connections.Items[i]
			g.Expect(meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%s: %+v", c.Name, c.Status)
		}
	}).Should(Succeed())
}

// apply applies an object by server-side apply as the given field owner, without force and with strict field
// validation, and returns the stored object.
func apply(ctx context.Context, object *unstructured.Unstructured, owner string) *unstructured.Unstructured {
	GinkgoHelper()
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	stored := object.DeepCopy()
	err = admin.Patch(ctx, stored, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner(owner), client.FieldValidation(metav1.FieldValidationStrict))
	Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
	return stored
}

// declared returns the part of an object that can be declared in Git: without the status and without the metadata that
// the API server and the manager set.
func declared(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy()
	delete(copied.Object, "status")
	copied.SetManagedFields(nil)
	copied.SetResourceVersion("")
	copied.SetFinalizers(nil)
	annotations := copied.GetAnnotations()
	maps.DeleteFunc(annotations, func(name, _ string) bool { return strings.HasPrefix(name, v1alpha1.GroupVersion.Group+"/") })
	if len(annotations) == 0 {
		annotations = nil
	}
	copied.SetAnnotations(annotations)
	return copied.Object
}
