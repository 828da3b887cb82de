// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install_test installs the rendered chart and config/default in a real API server, as GitOps tools do, and
// compares their configuration files with the programs' configuration types.
package install_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/chart"
	"github.com/herald-social/herald/test/suite"
)

func TestInstall(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "what the chart and config/default install")
}

var (
	admin client.Client
	// warnings are the API server's warnings about requests that it accepted.
	warnings recorder
	herald   string
)

// recorder keeps warnings.
type recorder struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (r *recorder) HandleWarningHeader(_ int, _, text string) { r.texts = append(r.texts, text) }

var _ rest.WarningHandler = (*recorder)(nil)

var _ = BeforeSuite(func(ctx SpecContext) {
	env := suite.Start()
	config := rest.CopyConfig(env.Config)
	config.WarningHandler = &warnings
	admin = suite.Must(client.New(config, client.Options{Scheme: env.Scheme}))
	herald = filepath.Join(GinkgoT().TempDir(), "herald")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", herald, "../../cmd/herald").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
})

// values writes a values file.
func values(text string) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "values.yaml")
	Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return file
}

// apply applies an object by server-side apply, without force, and returns the stored object.
func apply(ctx context.Context, object *unstructured.Unstructured, owner string) *unstructured.Unstructured {
	GinkgoHelper()
	applied := object.DeepCopy()
	err := admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(owner))
	Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(object.GroupVersionKind())
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), stored)).To(Succeed())
	return stored
}

// withoutServerFields returns an object without the fields that the API server sets for each request.
func withoutServerFields(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy()
	copied.SetManagedFields(nil)
	copied.SetResourceVersion("")
	return copied.Object
}

// isPlain reports whether an API server without CRDs serves the object's kind.
func isPlain(object *unstructured.Unstructured) bool {
	return !slices.Contains([]string{"cert-manager.io", "monitoring.coreos.com", "gateway.networking.k8s.io"}, object.GroupVersionKind().Group)
}

var _ = DescribeTable("Applying with one tool and then another changes nothing:", func(ctx SpecContext, namespace string, render func(context.Context) ([]*unstructured.Unstructured, error)) {
	objects := suite.Must(render(ctx))
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !isPlain(o) })
	// The chart has no Namespace, since Helm creates it. The namespaces to serve must exist as well, for the Roles in
	// them.
	namespaces := map[string]bool{namespace: true}
	for _, object := range objects {
		if object.GetNamespace() != "" {
			namespaces[object.GetNamespace()] = true
		}
	}
	for name := range namespaces {
		Expect(client.IgnoreAlreadyExists(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
	}
	warnings.texts = nil
	for _, object := range objects {
		first := apply(ctx, object, "flux")
		switch object.GetKind() {
		case "CustomResourceDefinition": // the API server sets defaults
			continue
		case "FlowSchema", "PriorityLevelConfiguration": // the API server writes their status itself
			again := apply(ctx, object, "flux")
			Expect(again.GetGeneration()).To(Equal(first.GetGeneration()), "%s %s was written again", object.GetKind(), object.GetName())
			other := apply(ctx, object, "argocd")
			Expect(cmp.Diff(first.Object["spec"], other.Object["spec"])).To(BeEmpty(), "%s %s", object.GetKind(), object.GetName())
			continue
		}
		again := apply(ctx, object, "flux")
		Expect(again.GetResourceVersion()).To(Equal(first.GetResourceVersion()), "%s %s was written again", object.GetKind(), object.GetName())
		other := apply(ctx, object, "argocd")
		Expect(cmp.Diff(withoutServerFields(first), withoutServerFields(other))).To(BeEmpty(), "%s %s", object.GetKind(), object.GetName())
	}
	Expect(warnings.texts).To(BeEmpty())
},
	Entry("config/default", "herald-system", func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		return chart.Kustomize(ctx, "default")
	}),
	Entry("the chart with the least values", "social", func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		return chart.Render(ctx, "outreach", "social", "minimal-values.yaml")
	}),
	Entry("the chart with everything", "full", func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		return chart.Render(ctx, "full", "full", "full-values.yaml")
	}),
	Entry("a trial", "trial", func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		return chart.Render(ctx, "trial", "trial", "evaluation-values.yaml", values("evaluation: {storeKey: abcdefghij0123456789}"))
	}),
)

// fileOf returns a process's configuration file from the rendered objects.
func fileOf(objects []*unstructured.Unstructured, name string) string {
	GinkgoHelper()
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" && object.GetName() == name {
			text, _, err := unstructured.NestedString(object.Object, "data", "config.yaml")
			Expect(err).NotTo(HaveOccurred())
			return text
		}
	}
	Fail("there is no ConfigMap " + name)
	return ""
}

var _ = DescribeTable("The programs accept the chart's configuration files with", func(ctx SpecContext, files ...string) {
	objects := suite.Must(chart.Render(ctx, "outreach", "social", files...))
	for _, process := range []string{"manager", "apiserver"} {
		file := filepath.Join(GinkgoT().TempDir(), process+".yaml")
		Expect(os.WriteFile(file, []byte(fileOf(objects, "outreach-"+process)), 0o600)).To(Succeed())
		out, err := exec.CommandContext(ctx, herald, "config", "check", file).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
	}
},
	Entry("the least values", "minimal-values.yaml"),
	Entry("every value", "full-values.yaml"),
	Entry("a trial", "evaluation-values.yaml"),
)

// values.yaml repeats the defaults for its readers. They must equal the programs' defaults.
var _ = It("has the defaults of the programs", func(ctx SpecContext) {
	objects := suite.Must(chart.Render(ctx, "herald", "herald-system", "minimal-values.yaml"))
	manager, apiserver := configv1alpha1.DefaultManager(), configv1alpha1.DefaultAPIServer()
	manager.Platforms.Facebook, apiserver.Platforms.Facebook = &configv1alpha1.Platform{}, &configv1alpha1.Platform{}
	manager.SiteURL, apiserver.SiteURL = "https://herald.example.com", "https://herald.example.com"
	// Thumbnails need another image.
	manager.Thumbnails.FFmpeg = ""
	// The chart's pod has a volume for unsaved tokens.
	manager.Credentials.Unsaved = configv1alpha1.Unsaved{Directory: "/var/lib/herald/unsaved", KeyFile: "/etc/herald/unsaved-key/key"}
	// If the file sets no level, --log-level applies, which is info by default.
	manager.Log.Level, apiserver.Log.Level = "info", "info"
	var gotManager configv1alpha1.ManagerConfiguration
	var gotAPIServer configv1alpha1.APIServerConfiguration
	Expect(yaml.UnmarshalStrict([]byte(fileOf(objects, "herald-manager")), &gotManager)).To(Succeed())
	Expect(yaml.UnmarshalStrict([]byte(fileOf(objects, "herald-apiserver")), &gotAPIServer)).To(Succeed())
	// An empty list is equivalent to a missing one.
	Expect(cmp.Diff(manager, &gotManager, cmpopts.EquateEmpty())).To(BeEmpty())
	Expect(cmp.Diff(apiserver, &gotAPIServer, cmpopts.EquateEmpty())).To(BeEmpty())
})

// The chart can set every field of the configuration: a new field needs a value in the chart, or a reason here.
var _ = It("covers each configuration field", func(ctx SpecContext) {
	elsewhere := map[string]string{
		"apiVersion": "of the file", "kind": "of the file", "releaseName": "fullnameOverride", "siteURL": "siteURL", "namespaces": "namespaces",
		"bindAddress": "the ports are the chart's", "health": "the ports are the chart's", "metrics": "metrics", "media": "media and its Secret",
		"platforms": "platforms", "tls": "apiserver.tls", "webhook": "webhook", "thumbnails": "thumbnails.enabled", "egress": "caBundle",
		"tracing": "tracing, once it has an endpoint", "replicas": "manager.replicas, with delivery.shareUploads or several delivery.shards", "notifications": "smtp, once it has a host",
	}
	objects := suite.Must(chart.Render(ctx, "herald", "herald-system", "minimal-values.yaml"))
	for process, kind := range map[string]reflect.Type{
		"manager": reflect.TypeFor[configv1alpha1.ManagerConfiguration](), "apiserver": reflect.TypeFor[configv1alpha1.APIServerConfiguration](),
	} {
		var written map[string]any
		Expect(yaml.Unmarshal([]byte(fileOf(objects, "herald-"+process)), &written)).To(Succeed())
		for _, field := range fieldsOf(kind) {
			if elsewhere[field] == "" {
				Expect(written).To(HaveKey(field), "%s: no value sets the field", process)
			}
		}
	}
})

func fieldsOf(kind reflect.Type) []string {
	var names []string
	for field := range kind.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			names = append(names, fieldsOf(field.Type)...)
			continue
		}
		names = append(names, name)
	}
	return names
}

// The demo team uses the accounts that the sandbox starts with.
var _ = It("connects the sandbox's accounts", func() {
	data := suite.Must(os.ReadFile(filepath.Join("..", "..", "charts", "herald", "files", "demo.yaml")))
	text := string(data)
	for _, account := range sandbox.DemoAccounts() {
		Expect(text).To(MatchRegexp("  platform: " + account.Platform + "\n  accountID: \"" + account.ID + "(@[a-z.]+)?\"\n"))
		Expect(text).To(ContainSubstring("  accessToken: " + account.AccessToken + "\n"))
		if account.RefreshToken != "" {
			Expect(text).To(ContainSubstring("  refreshToken: " + account.RefreshToken + "\n"))
		}
		Expect(text).To(ContainSubstring("  scopes: \"" + strings.Join(account.Scopes, " ") + "\"\n"))
	}
})
