// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e_test installs the chart in a real cluster and uses it: posts of every category by kubectl and from another pod, killed pods,
// network partitions, rollouts, an upgrade and a rollback, and an uninstall. `make test-e2e` runs it on the current kubeconfig's cluster;
// docs/testing.md lists the requirements.
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// release is the Helm release name, and home its namespace. They differ from the chart's name to detect hard-coded names.
	release = "outreach"
	home    = "herald-e2e"
	// clients is the namespace of the API client pods.
	clients = "herald-e2e-clients"
	// demo is the namespace of an evaluation's team.
	demo = "herald-demo"
	// outlet is a team that is deleted together with its namespace of the same name.
	outlet = "herald-e2e-outlet"
)

// repository is the root of this repository.
var repository, _ = filepath.Abs(filepath.Join("..", ".."))

// The environment variables of the suite; docs/testing.md documents them.
var (
	// short skips specs that take minutes.
	short = os.Getenv("SHORT") != ""
	// loader is the command that loads an OCI archive into the cluster.
	loader = os.Getenv("E2E_LOAD")
	// onNode is the command that runs another command on the node.
	onNode = os.Getenv("E2E_NODE")
	// registry and tag name images that the cluster can pull. If they are set, no images are built.
	registry, tag = os.Getenv("E2E_REGISTRY"), os.Getenv("E2E_TAG")
	// previous is the previous version, a tag of this repository.
	previous = os.Getenv("E2E_PREVIOUS")
)

var (
	config   *rest.Config
	k8s      client.Client
	typed    *kubernetes.Clientset
	resource *discovery.DiscoveryClient
	// kubeconfig is the client configuration of the command line tools.
	kubeconfig clientcmd.ClientConfig
)

// TestE2E needs a cluster, and is skipped without one.
func TestE2E(t *testing.T) {
	kubeconfig = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	var err error
	if config, err = kubeconfig.ClientConfig(); err != nil {
		t.Skipf("no cluster is configured; set KUBECONFIG to one for tests: %v", err)
	}
	config.QPS, config.Burst = -1, 0
	// An inventory also lists deprecated kinds.
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	typed = kubernetes.NewForConfigOrDie(config)
	resource = typed.DiscoveryClient
	version, err := resource.ServerVersion()
	if err != nil {
		t.Skipf("the cluster at %s does not respond: %v", config.Host, err)
	}
	if k8s, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("the cluster at %s is Kubernetes %s\n", config.Host, version.GitVersion)
	RegisterFailHandler(Fail)
	RunSpecs(t, "End to end")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	for _, name := range []string{home, clients, trial, demo, outlet} {
		_, err := typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "namespace %s exists, possibly from an interrupted run; delete it, or use another cluster (%v)", name, err)
	}
	Expect(os.RemoveAll(logs)).To(Succeed())
	if tag == "" {
		tag = build(ctx, repository, "")
	}
})

// createNamespaces creates a run's namespaces. They enforce the restricted pod security standard.
func createNamespaces(ctx context.Context) {
	for _, name := range []string{home, clients} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
		}}}
		Expect(k8s.Create(ctx, namespace)).To(Succeed())
	}
}

// deleteNamespace deletes a namespace and waits for its removal.
func deleteNamespace(ctx context.Context, name string) {
	err := k8s.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	Eventually(func() bool {
		return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}))
	}).WithContext(ctx).Should(BeTrue(), "namespace %s ends", name)
}

// logf prints a measurement.
func logf(format string, args ...any) {
	GinkgoHelper()
	fmt.Printf("e2e: "+format+"\n", args...)
	AddReportEntry(fmt.Sprintf(format, args...))
}
