// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"bytes"
	"context"
	"fmt"
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

// setFiles returns the names of the set's files, in the order that kubectl applies them.
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

// flux applies a folder with hack/flux, waits until all its objects are ready, and returns the action for each.
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
	files := suite.Must(store.New(bucket))
	Expect(files.Put(ctx, store.Key(media), "image/jpeg", int64(len(picture)), bytes.NewReader(picture))).Error().NotTo(HaveOccurred())
}

// expectSet expects that a set's first post is published once and that its second post is scheduled.
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

// manifest writes a post to X to a file in its own folder, as it would be stored in Git.
func manifest(name, caption string) (file string) {
	GinkgoHelper()
	text := fmt.Sprintf(`apiVersion: social.herald.dev/v1alpha1
kind: Post
metadata:
  name: %s
  namespace: %s
  annotations:
    kustomize.toolkit.fluxcd.io/force: enabled
spec:
  category: text
  targets:
  - connectionRef:
      name: demo-x
    caption: %s
`, name, demo, caption)
	file = filepath.Join(GinkgoT().TempDir(), "post.yaml")
	Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return file
}

// kubectl runs kubectl as an administrator and returns its output.
func kubectl(ctx context.Context, kubeconfig, input string, args ...string) (string, error) {
	program := exec.CommandContext(ctx, filepath.Join(envtest.Root(), "bin", "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	program.Stdin = strings.NewReader(input)
	output, err := program.CombinedOutput()
	return string(output), err
}

// kubectlDoes runs kubectl and expects it to succeed.
func kubectlDoes(ctx context.Context, kubeconfig, input string, args ...string) string {
	GinkgoHelper()
	output, err := kubectl(ctx, kubeconfig, input, args...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, output)
	return output
}

var _ = Describe("A published post recreated by a tool", func() {
	stored := func(ctx context.Context, name string) *v1alpha1.Post {
		GinkgoHelper()
		post := &v1alpha1.Post{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: demo, Name: name}, post)).To(Succeed())
		return post
	}
	// applied applies a post with kubectl and waits until it is published.
	applied := func(ctx context.Context, kubeconfig, name string) *v1alpha1.Post {
		GinkgoHelper()
		kubectlDoes(ctx, kubeconfig, "", "apply", "-f", manifest(name, "A tpyo by "+name))
		post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: demo, Name: name}}
		expectCondition(ctx, post, v1alpha1.ConditionPublished, v1alpha1.ReasonPosted)
		return stored(ctx, name)
	}

	DescribeTable("is not published twice", func(ctx SpecContext, name string, tool func(ctx context.Context, kubeconfig string, first *v1alpha1.Post)) {
		kubeconfig := administrator(ctx)
		first := applied(ctx, kubeconfig, name)
		before := published(ctx)
		tool(ctx, kubeconfig, first)
		expectCondition(ctx, first, v1alpha1.ConditionAdopted, v1alpha1.ReasonAlreadyPublished)
		expectCondition(ctx, first, v1alpha1.ConditionPublished, v1alpha1.ReasonPosted)
		now := stored(ctx, name)
		Expect(now.UID).NotTo(Equal(first.UID), "the post is another object")
		Expect(now.Status.Targets[0].ExternalURL).To(Equal(first.Status.Targets[0].ExternalURL))
		Expect(published(ctx)).To(Equal(before))
	},
		Entry("Flux, with force, for a corrected typo", "by-flux", func(ctx context.Context, kubeconfig string, first *v1alpha1.Post) {
			did := flux(ctx, kubeconfig, filepath.Dir(manifest(first.Name, "A typo, mended")))
			Expect(did).To(ConsistOf(HavePrefix("created Post/")), "Flux recreates it")
		}),
		Entry("kubectl replace --force, which is Argo CD's Replace with Force", "by-replace", func(ctx context.Context, kubeconfig string, first *v1alpha1.Post) {
			mended := manifest(first.Name, "A typo, mended")
			said, err := kubectl(ctx, kubeconfig, "", "replace", "-f", mended)
			Expect(err).To(HaveOccurred(), "Argo CD's Replace alone")
			Expect(said).To(ContainSubstring("the spec is frozen"))
			kubectlDoes(ctx, kubeconfig, "", "replace", "--force", "-f", mended)
		}),
		Entry("kubectl delete and apply", "by-delete", func(ctx context.Context, kubeconfig string, first *v1alpha1.Post) {
			file := manifest(first.Name, "A tpyo by "+first.Name)
			kubectlDoes(ctx, kubeconfig, "", "delete", "-f", file)
			kubectlDoes(ctx, kubeconfig, "", "apply", "-f", file)
		}),
		Entry("kubectl get and replace --force, with its complete content", "by-get", func(ctx context.Context, kubeconfig string, first *v1alpha1.Post) {
			whole := kubectlDoes(ctx, kubeconfig, "", "get", "post", first.Name, "--namespace", demo, "-o", "yaml")
			Expect(whole).To(ContainSubstring("externalURL"))
			kubectlDoes(ctx, kubeconfig, whole, "replace", "--force", "-f", "-")
		}),
	)
})
