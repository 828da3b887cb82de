// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/test/envtest"
)

var _ = Describe("A Media in a namespace that no Team owns", func() {
	It("gets no upload URL and is not fetched, until a Team owns it", func(ctx SpecContext) {
		upload, fetched := newMedia(homeless, func(*v1alpha1.Media) {}), newMedia(homeless, fromSource(web.URL+"/a.png"))
		state := func(m *v1alpha1.Media) func() (string, error) {
			return func() (string, error) {
				err := k8s.Get(ctx, client.ObjectKeyFromObject(m), m)
				return conditions.Reason(m.Status.Conditions), err
			}
		}
		for _, m := range []*v1alpha1.Media{upload, fetched} {
			Expect(k8s.Create(ctx, m)).To(Succeed())
			Eventually(state(m)).Should(Equal(v1alpha1.ReasonNoTeam))
			Expect(m.Status.Phase).To(Equal(v1alpha1.MediaPending))
			Expect(m.Status.UploadURL).To(BeEmpty())
			Expect(m.Finalizers).To(BeEmpty(), "no file is awaited")
			Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
		}

		Expect(passes.Longest()).To(And(BeNumerically(">", 0), BeNumerically("<=", pacing.MediaTimeout)), "a pass has an end")

		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: homeless}, Spec: v1alpha1.TeamSpec{Namespace: homeless}}
		Expect(envtest.Own(ctx, k8s, team)).To(Succeed())
		Eventually(state(upload)).Should(Equal(v1alpha1.ReasonAwaitingUpload))
		Expect(upload.Status.UploadURL).NotTo(BeEmpty())
		Eventually(state(fetched)).Should(Equal(v1alpha1.ReasonUploaded))

		Expect(k8s.Delete(ctx, team)).To(Succeed())
		Eventually(state(upload)).Should(Equal(v1alpha1.ReasonNoTeam))
		Expect(upload.Status.UploadURL).To(BeEmpty())
		Consistently(state(fetched), 300*time.Millisecond).Should(Equal(v1alpha1.ReasonUploaded), "the uploaded file remains")
	})
})

var _ = DescribeTable("a Media works with every name that Kubernetes allows:", func(ctx SpecContext, name string) {
	m := created(ctx, managed, func(m *v1alpha1.Media) { m.Name = name })
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload)(g, m)
	}).Should(Succeed())
	put(ctx, m, "0123456789")
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded)(g, m)
	}).Should(Succeed())
	Expect(k8s.Delete(ctx, m)).To(Succeed())
	Eventually(func() bool { return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)) }).Should(BeTrue())
	Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
},
	Entry("a digit", "0"),
	Entry("with dots", "a.b.png"),
	Entry("of 253 characters", strings.Repeat("m", 253)),
	Entry("of 253 digits and dots", strings.Repeat("7.", 126)+"7"),
)

// A Media contains its upload URL, which is a bearer token for writing the file. A user with view access to a namespace
// must not be able to read it.
func TestViewersGetNoUploadURLs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "rbac", "users", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	readers := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal(document, &role); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "media") || slices.Contains(rule.Resources, "media/status") || slices.Contains(rule.Resources, "*") {
					for label := range role.Labels {
						readers[label] = true
					}
				}
			}
		}
	}
	for label, want := range map[string]bool{
		"rbac.authorization.k8s.io/aggregate-to-view":  false,
		"rbac.authorization.k8s.io/aggregate-to-edit":  true,
		"rbac.authorization.k8s.io/aggregate-to-admin": true,
	} {
		if readers[label] != want {
			t.Errorf("%s reads media: %v", label, readers[label])
		}
	}
}
