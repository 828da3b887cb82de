// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/suite"
)

// The account in config/samples/set, and the URL of its picture.
const (
	studioAccount = "2244994945"
	posterSource  = "https://www.example.com/poster.jpg"
)

// aSet copies config/samples/set into a folder, for a team with the given name and a new account, whose tokens replace
// "replace-me". The picture's URL does not resolve.
func aSet(ctx context.Context, team, account string) (folder string) {
	GinkgoHelper()
	granted := suite.Must(platform.Account(ctx, "x", account, nil))
	tokens := strings.NewReplacer("studio", team, studioAccount, account, posterSource, "https://pictures.invalid/poster.jpg",
		"accessToken: replace-me", "accessToken: "+granted.AccessToken, "refreshToken: replace-me", "refreshToken: "+granted.RefreshToken,
		"scopes: tweet.read tweet.write users.read media.write offline.access", "scopes: "+strings.Join(granted.Scopes, " "))
	folder = GinkgoT().TempDir()
	for _, name := range setFiles() {
		text := suite.Must(os.ReadFile(filepath.Join(setFolder(), name)))
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(tokens.Replace(string(text))), 0o600)).To(Succeed())
	}
	return folder
}

func setFolder() string { return filepath.Join(envtest.Root(), "config", "samples", "set") }

// setFiles returns the names of the set's files, in the order in which kubectl applies them.
func setFiles() (names []string) {
	GinkgoHelper()
	entries := suite.Must(os.ReadDir(setFolder()))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	slices.Sort(names)
	return names
}

// administrator writes a kubeconfig for an administrator and returns its path.
func administrator(ctx context.Context) (file string) {
	GinkgoHelper()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "flux"}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "flux"}}
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, binding))).To(Succeed())
	text := suite.Must(env.Kubeconfig("flux", "flux-system"))
	file = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	return file
}

// flux applies a folder with hack/flux, waits until all its objects are ready, and returns what was done with each.
func flux(ctx context.Context, kubeconfig, folder string) []string {
	GinkgoHelper()
	program := exec.CommandContext(ctx, "go", "run", "-buildvcs=false", ".", kubeconfig, folder, "3m")
	program.Dir = filepath.Join(envtest.Root(), "hack", "flux")
	program.Env = append(os.Environ(), "GOWORK=off")
	var problem bytes.Buffer
	program.Stderr = &problem
	text, err := program.Output()
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", text, problem.String())
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// fetchPoster stores the image under the Media's key, like a process that fetches it and exits before it reports
// success. The next attempt finds the file.
func fetchPoster(ctx context.Context, namespace string) {
	media := &v1alpha1.Media{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "poster"}, media)).To(Succeed())
		g.Expect(media.Status.Phase).To(Equal(v1alpha1.MediaPending))
	}).WithContext(ctx).Should(Succeed())
	picture := suite.Must(os.ReadFile(filepath.Join(envtest.Root(), "internal", "media", "probe", "testdata", "picture.jpg")))
	files, err := store.New(bucket)
	Expect(err).NotTo(HaveOccurred())
	Expect(files.Put(ctx, store.Key(media), "image/jpeg", int64(len(picture)), bytes.NewReader(picture))).Error().NotTo(HaveOccurred())
}

// expectSet expects that a set's first post is published once and that the second is scheduled.
func expectSet(ctx context.Context, namespace, account string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for name, phase := range map[string]v1alpha1.PostPhase{"opening": v1alpha1.PhasePosted, "poster": v1alpha1.PhaseScheduled} {
			post := &v1alpha1.Post{}
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, post)).To(Succeed())
			g.Expect(post.Status.Phase).To(Equal(phase), "%s: %+v", name, post.Status)
			g.Expect(meta.IsStatusConditionTrue(post.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		}
	}).WithContext(ctx).Should(Succeed())
	posts := suite.Must(platform.Posts(ctx, "x", account))
	Expect(posts).To(HaveLen(1))
}

var _ = Describe("config/samples/set, applied together before its team exists", func() {
	It("becomes ready with one waiting Flux Kustomization, without later drift", func(ctx SpecContext) {
		const team, account = "atflux", "7700000000000000001"
		folder, kubeconfig := aSet(ctx, team, account), administrator(ctx)
		go func() {
			defer GinkgoRecover()
			fetchPoster(ctx, "team-"+team)
		}()
		first := flux(ctx, kubeconfig, folder)
		Expect(first).To(HaveLen(7), "a namespace, a team, a Secret, a connection, a file and two posts: %v", first)
		Expect(first).To(HaveEach(HavePrefix("created ")))
		expectSet(ctx, "team-"+team, account)
		again := flux(ctx, kubeconfig, folder)
		Expect(again).To(HaveEach(Or(HavePrefix("unchanged "), HavePrefix("skipped Secret"), HavePrefix("skipped Post"))))
		Expect(again).To(HaveLen(len(first)))
		expectSet(ctx, "team-"+team, account)
	})

	It("becomes ready with kubectl, file by file", func(ctx SpecContext) {
		const team, account = "atkubectl", "7700000000000000002"
		folder := aSet(ctx, team, account)
		for _, name := range setFiles() {
			text := suite.Must(os.ReadFile(filepath.Join(folder, name)))
			objects := suite.Must(cluster.ParseObjects(text))
			for _, object := range objects {
				apply(ctx, object, "kubectl")
			}
		}
		fetchPoster(ctx, "team-"+team)
		expectSet(ctx, "team-"+team, account)
	})

	It("has every kind that a team needs, each file with an explanation", func(ctx SpecContext) {
		demo := sandbox.DemoAccounts()
		Expect(demo).NotTo(ContainElement(HaveField("ID", studioAccount)), "its account is a placeholder")
		kinds := map[string]bool{}
		for _, name := range setFiles() {
			text := suite.Must(os.ReadFile(filepath.Join(setFolder(), name)))
			Expect(string(text)).To(HavePrefix("# "))
			objects := suite.Must(cluster.ParseObjects(text))
			for _, object := range objects {
				kinds[object.GetKind()] = true
			}
		}
		Expect(kinds).To(HaveLen(6))
		Expect(kinds).To(And(HaveKey("Namespace"), HaveKey("Team"), HaveKey("Connection"), HaveKey("Secret"), HaveKey("Media"), HaveKey("Post")))
	})
})
