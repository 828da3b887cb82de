// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/chart"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/suite"
)

// samples returns the objects in config/samples, as its kustomization lists them.
func samples(ctx context.Context) []*unstructured.Unstructured {
	GinkgoHelper()
	return suite.Must(chart.Kustomize(ctx, "samples"))
}

// postsOf returns the posts among objects.
func postsOf(objects []*unstructured.Unstructured) (posts []*v1alpha1.Post) {
	GinkgoHelper()
	for _, object := range objects {
		if object.GetKind() != "Post" {
			continue
		}
		post := &v1alpha1.Post{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, post)).To(Succeed())
		posts = append(posts, post)
	}
	return posts
}

var _ = It("The samples cover every kind, category and platform, and the kustomization has them all", func(ctx SpecContext) {
	var kinds, platforms, categories, states []string
	objects := samples(ctx)
	for _, object := range objects {
		kinds = append(kinds, object.GetKind())
		if name, found, _ := unstructured.NestedString(object.Object, "spec", "platform"); found {
			platforms = append(platforms, name)
		}
	}
	for name := range admin.Scheme().KnownTypes(v1alpha1.GroupVersion) {
		// The types that Kubernetes adds to every group are in another package. Only Herald writes Usage and
		// OAuthGrant.
		if strings.HasPrefix(admin.Scheme().KnownTypes(v1alpha1.GroupVersion)[name].PkgPath(), "github.com/herald-social") && !strings.HasSuffix(name, "List") && name != "Usage" && name != "OAuthGrant" {
			Expect(kinds).To(ContainElement(name))
		}
	}
	Expect(kinds).NotTo(Or(ContainElement("Usage"), ContainElement("OAuthGrant")))
	for _, account := range sandbox.DemoAccounts() {
		Expect(platforms).To(ContainElement(account.Platform))
	}
	for _, post := range postsOf(objects) {
		categories = append(categories, string(post.Spec.Category))
		switch {
		case post.Spec.Draft:
			states = append(states, "draft")
		case post.Spec.ScheduledAt != nil:
			states = append(states, "scheduled")
		default:
			states = append(states, "immediate")
		}
	}
	Expect(categories).To(ContainElements("text", "image", "video", "tree"))
	Expect(states).To(ContainElements("draft", "scheduled", "immediate"))

	list := suite.Must(os.ReadFile(filepath.Join(envtest.Root(), "config", "samples", "Kustomization")))
	for _, folder := range []string{".", "team", "media", "notifier", "schedule"} {
		files := suite.Must(filepath.Glob(filepath.Join(envtest.Root(), "config", "samples", folder, "*.yaml")))
		for _, file := range files {
			Expect(string(list)).To(ContainSubstring("- " + filepath.Join(folder, filepath.Base(file)) + "\n"))
			text := suite.Must(os.ReadFile(file))
			Expect(string(text)).To(HavePrefix("# "), "%s has no description", file)
		}
	}
})

// files are the uploads for the samples' Media.
var files = map[string]string{"picture": "picture.jpg", "film": "tenseconds.mp4", "step": "picture.png"}

// fileOf returns the file for a Media.
func fileOf(media string) []byte {
	GinkgoHelper()
	return suite.Must(os.ReadFile(filepath.Join(envtest.Root(), "internal", "media", "probe", "testdata", files[media])))
}

// upload uploads a Media's file to the URL in its status, as the samples' comments describe.
func upload(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	media := &v1alpha1.Media{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), media)).To(Succeed())
		g.Expect(media.Status.UploadURL).NotTo(BeEmpty(), "%+v", media.Status)
	}).Should(Succeed())
	request := suite.Must(http.NewRequestWithContext(ctx, http.MethodPut, media.Status.UploadURL, bytes.NewReader(fileOf(media.Name))))
	request.Header.Set("Content-Type", string(media.Spec.MimeType))
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	Expect(response).To(HaveHTTPStatus(http.StatusOK))
}

var _ = It("All samples can be applied with two tools, and are published", func(ctx SpecContext) {
	objects := samples(ctx)
	var first []*unstructured.Unstructured
	for _, object := range objects {
		if _, uploaded := files[object.GetName()]; uploaded && object.GetKind() == "Media" {
			size := int64(len(fileOf(object.GetName())))
			Expect(unstructured.SetNestedField(object.Object, size, "spec", "sizeBytes")).To(Succeed())
		}
		first = append(first, apply(ctx, object, "flux"))
	}
	for _, object := range objects {
		if _, uploaded := files[object.GetName()]; uploaded && object.GetKind() == "Media" {
			upload(ctx, object)
		}
	}
	for _, post := range postsOf(objects) {
		Eventually(func(g Gomega) {
			now := &v1alpha1.Post{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(post), now)).To(Succeed())
			want := v1alpha1.PhasePosted
			switch {
			case post.Spec.Draft:
				want = v1alpha1.PhaseDraft
			case post.Spec.ScheduledAt != nil:
				want = v1alpha1.PhaseScheduled
			}
			g.Expect(now.Status.Phase).To(Equal(want), "%s: %+v", post.Name, now.Status)
			g.Expect(meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		}).Should(Succeed())
	}
	Eventually(func(g Gomega) {
		acme, key := &v1alpha1.Team{}, &v1alpha1.APIKey{}
		g.Expect(admin.Get(ctx, client.ObjectKey{Name: "acme"}, acme)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(acme.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%+v", acme.Status)
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: "team-acme", Name: "ci"}, key)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(key.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%+v", key.Status)
	}).Should(Succeed())
	before := published(ctx)
	for i, object := range objects {
		again := apply(ctx, object, "flux")
		Expect(cmp.Diff(declared(first[i]), declared(again))).To(BeEmpty(), "%s %s", object.GetKind(), object.GetName())
		if object.GetKind() == "Secret" {
			// stringData is write-only, so two owners conflict over it. Besides, a second owner must not restore old
			// tokens.
			continue
		}
		other := apply(ctx, object, "argocd")
		Expect(cmp.Diff(declared(first[i]), declared(other))).To(BeEmpty(), "%s %s", object.GetKind(), object.GetName())
	}
	Consistently(func() int { return published(ctx) }, time.Second).Should(Equal(before), "an applied post is not published twice")
})

var _ = It("The webhook configuration can be reapplied after the manager has set its CA bundle", func(ctx SpecContext) {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: "herald"}
	Expect(admin.Get(ctx, key, configuration)).To(Succeed())
	Expect(configuration.Webhooks[0].ClientConfig.CABundle).NotTo(BeEmpty())
	address := strings.TrimSuffix(*configuration.Webhooks[0].ClientConfig.URL, "/validate-post")
	version := configuration.ResourceVersion
	Expect(cluster.ApplyWebhook(ctx, admin, filepath.Join(envtest.Root(), "config", "webhook", "webhook.yaml"), address)).To(Succeed())
	Expect(admin.Get(ctx, key, configuration)).To(Succeed())
	Expect(configuration.ResourceVersion).To(Equal(version), "all files are equal")
})

// published returns the number of posts on all platforms.
func published(ctx context.Context) (n int) {
	GinkgoHelper()
	for _, account := range sandbox.DemoAccounts() {
		posts := suite.Must(platform.Posts(ctx, account.Platform, account.ID))
		n += len(posts)
	}
	return n
}

// fences matches the code blocks of a Markdown page, with their language.
var fences = regexp.MustCompile("(?s)\n *```([a-z]*)[^\n]*\n(.*?)\n *```")

// TestDefaultsAreOmitted checks that manifests which users copy omit `draft: false` and `cancelled: false`. These are
// the defaults, and a tool that applies them would own fields that users and the API set.
func TestDefaultsAreOmitted(t *testing.T) {
	stated := regexp.MustCompile(`\b(draft|cancelled)"?:\s*false\b`)
	looked := 0
	err := filepath.WalkDir(envtest.Root(), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(envtest.Root(), path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch relative {
			case ".git", "bin", ".local", "dist", "hack", "internal", "test":
				return filepath.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var copied []string
		switch extension := filepath.Ext(path); {
		case extension == ".md":
			for _, fence := range fences.FindAllStringSubmatch(string(text), -1) {
				copied = append(copied, fence[2])
			}
		case strings.HasPrefix(relative, "config/samples"), strings.HasPrefix(relative, "charts"):
			copied = []string{string(text)}
		}
		for _, block := range copied {
			looked++
			block = strings.ReplaceAll(block, "-d '{\n  \"draft\": false\n}'", "") // a change of a draft
			if found := stated.FindString(block); found != "" {
				t.Errorf("%s states %q; leave it out", relative, found)
			}
		}
		return nil
	})
	if err != nil || looked < 50 {
		t.Fatalf("checked %d texts: %v", looked, err)
	}
}
