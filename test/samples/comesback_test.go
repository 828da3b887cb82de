// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package samples_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/envtest"
)

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
	said, err := program.CombinedOutput()
	return string(said), err
}

// kubectlDoes runs kubectl and expects it to succeed.
func kubectlDoes(ctx context.Context, kubeconfig, input string, args ...string) string {
	GinkgoHelper()
	said, err := kubectl(ctx, kubeconfig, input, args...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, said)
	return said
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
		Expect(now.UID).NotTo(Equal(first.UID), "it is another object")
		Expect(now.Status.Targets[0].ExternalURL).To(Equal(first.Status.Targets[0].ExternalURL))
		Expect(published(ctx)).To(Equal(before))
	},
		Entry("Flux, with force, for a typo that was mended", "by-flux", func(ctx context.Context, kubeconfig string, first *v1alpha1.Post) {
			did := flux(ctx, kubeconfig, filepath.Dir(manifest(first.Name, "A typo, mended")))
			Expect(did).To(ConsistOf(HavePrefix("created Post/")), "Flux makes it anew")
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
		Entry("kubectl get and replace --force, with all that it holds", "by-get", func(ctx context.Context, kubeconfig string, first *v1alpha1.Post) {
			whole := kubectlDoes(ctx, kubeconfig, "", "get", "post", first.Name, "--namespace", demo, "-o", "yaml")
			Expect(whole).To(ContainSubstring("externalURL"))
			kubectlDoes(ctx, kubeconfig, whole, "replace", "--force", "-f", "-")
		}),
	)
})
