// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
)

// helm runs Helm in the release's namespace.
func helm(ctx context.Context, args ...string) {
	GinkgoHelper()
	command(ctx, repository, filepath.Join(repository, "bin", "helm"), append(args, "--namespace", home)...)
}

// values returns an evaluation's Helm values with a version's images.
func values(version string) []string {
	out := []string{"--set", "evaluation.enabled=true,image.tag=" + version, "--wait", "--timeout", "5m"}
	if registry != "" {
		out = append(out, "--set", "image.repository="+registry+"/herald")
	}
	return out
}

func install(ctx context.Context, chart, version string, more ...string) {
	GinkgoHelper()
	started := time.Now()
	helm(ctx, slices.Concat([]string{"install", release, chart}, values(version), more)...)
	logf("installed %s in %s", version, time.Since(started).Round(100*time.Millisecond))
}

// keep annotates the simulated platforms and the store, so Helm keeps them on uninstall.
const keep = `function out() {
	if (doc ~ /component: (sandbox|store)\n/) sub(/metadata:\n/, "metadata:\n  annotations: {helm.sh/resource-policy: keep}\n", doc)
	printf "%s", doc; doc = ""
}
/^---/ { out() }
{ doc = doc $0 "\n" }
END { out() }`

// postRendererArgs returns the arguments that preserve the platforms and the store, and thus the published posts, after
// an uninstall. Each install and upgrade needs them.
func postRendererArgs() []string {
	return []string{"--post-renderer", "awk", "--post-renderer-args", keep}
}

// begin applies an evaluation's objects, as described in the chart's notes, and waits until all accounts are connected.
func begin(ctx context.Context) {
	GinkgoHelper()
	var shipped corev1.ConfigMap
	Expect(k8s.Get(ctx, types.NamespacedName{Namespace: home, Name: release + "-demo"}, &shipped)).To(Succeed())
	objects, err := cluster.ParseObjects([]byte(shipped.Data["demo.yaml"]))
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		// For some seconds after the CRDs are installed, Kubernetes rejects objects, because it has not counted the
		// quota yet.
		Eventually(func() error {
			return k8s.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("e2e"), client.ForceOwnership)
		}).WithContext(ctx).Should(Succeed())
	}
	Eventually(func(g Gomega) {
		var connections v1alpha1.ConnectionList
		g.Expect(k8s.List(ctx, &connections, client.InNamespace(demo))).To(Succeed())
		g.Expect(connections.Items).To(HaveLen(6))
		for i := range connections.Items {
			g.Expect(meta.IsStatusConditionTrue(connections.Items[i].Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), connections.Items[i].Name)
		}
		g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: demo, Name: "demo-token"}, &corev1.Secret{})).To(Succeed())
	}).WithContext(ctx).Should(Succeed())
	// Threads allows 250 posts per account and day, and Instagram 50.
	var connections v1alpha1.ConnectionList
	Expect(k8s.List(ctx, &connections, client.InNamespace(demo))).To(Succeed())
	sandbox := platforms(ctx)
	for i := range connections.Items {
		spec := &connections.Items[i].Spec
		Expect(sandbox.Account(ctx, string(spec.Platform), spec.AccountID, map[string]any{"quota": 1_000_000})).Error().NotTo(HaveOccurred())
	}
}

// rolledOut waits until a Deployment has only new pods.
func rolledOut(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var d appsv1.Deployment
		g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: home, Name: name}, &d)).To(Succeed())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		g.Expect(d.Status.UpdatedReplicas).To(Equal(*d.Spec.Replicas))
		g.Expect(d.Status.Replicas).To(Equal(*d.Spec.Replicas))
		g.Expect(d.Status.AvailableReplicas).To(Equal(*d.Spec.Replicas))
	}).WithContext(ctx).Should(Succeed(), "%s is rolled out", name)
}

// checkout checks a version of this repository out into a separate directory.
func checkout(ctx context.Context, version string) string {
	GinkgoHelper()
	dir := filepath.Join(repository, "bin", "e2e", version)
	Expect(os.RemoveAll(dir)).To(Succeed())
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	command(ctx, repository, "sh", "-c", `git archive "$0" | tar --extract --directory="$1"`, version, dir)
	return dir
}
