// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flux_test tests docs/gitops.md with Flux itself: its kustomize-controller runs against a real API server with Herald's webhook
// and manager, and syncs archives served by the suite instead of Git.
package flux_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/logtest"
	"github.com/herald-social/herald/test/managertest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/storetest"
	"github.com/herald-social/herald/test/suite"
)

func TestFlux(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Flux's kustomize-controller")
}

// system is the namespace of Flux and the suite's sources and Kustomizations.
const system = "flux-system"

var (
	admin    client.Client
	platform sandboxtest.Client
	git      *repository
	// manager is the manager of the current spec, which may stop it and start another one with start.
	manager *managertest.Process
	start   func() *managertest.Process
)

var _ = BeforeSuite(func(ctx SpecContext) {
	env := suite.Start()
	admin = env.Client
	Expect(apiextensionsv1.AddToScheme(admin.Scheme())).To(Succeed())
	config := filepath.Join(envtest.Root(), "config")
	Expect(cluster.ApplyFolders(ctx, admin, filepath.Join(config, "rbac"))).To(Succeed())
	platform = sandboxtest.Start(GinkgoT())

	installation := managertest.Installation{Env: env, Program: managertest.Build(GinkgoT()), SandboxURL: platform.URL, Store: storetest.Start(GinkgoT())}
	settings := installation.Config(GinkgoT())
	start = func() *managertest.Process { return startManager(installation, settings) }
	Expect(cluster.ApplyWebhook(ctx, admin, filepath.Join(config, "webhook", "webhook.yaml"), "https://"+settings.Webhook.BindAddress)).To(Succeed())
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})).To(Succeed())
	define(ctx)
	startController(ctx, suite.Must(env.Kubeconfig("flux", system)))
	git = serveRepository()
})

func startManager(installation managertest.Installation, settings *configv1alpha1.ManagerConfiguration) *managertest.Process {
	return installation.Manager(GinkgoT(), settings)
}

// define installs Flux's CRDs: kustomize-controller's from its own module, and minimal ones for the sources, since it
// reads only their status.
func define(ctx context.Context) {
	GinkgoHelper()
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/fluxcd/kustomize-controller")
	list.Dir, list.Env = filepath.Join(envtest.Root(), "hack", "kustomize-controller"), append(os.Environ(), "GOWORK=off")
	module := suite.Must(list.Output())
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "bases", "kustomize.toolkit.fluxcd.io_kustomizations.yaml"))
	Expect(err).NotTo(HaveOccurred())
	objects := suite.Must(cluster.ParseObjects(data))
	for _, object := range objects {
		Expect(admin.Create(ctx, object)).To(Succeed())
	}
	for _, source := range []struct{ kind, plural, version string }{
		{"GitRepository", "gitrepositories", "v1"},
		{"OCIRepository", "ocirepositories", "v1"},
		{"Bucket", "buckets", "v1"},
		{"ExternalArtifact", "externalartifacts", "v1"},
	} {
		Expect(admin.Create(ctx, sourceDefinition(source.kind, source.plural, source.version))).To(Succeed())
	}
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "flux"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "flux"}},
	})).To(Succeed())
	Eventually(func(g Gomega) {
		var all apiextensionsv1.CustomResourceDefinitionList
		g.Expect(admin.List(ctx, &all)).To(Succeed())
		for i := range all.Items {
			g.Expect(all.Items[i].Status.Conditions).To(ContainElement(And(
				HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue))), all.Items[i].Name)
		}
	}).Should(Succeed())
}

func sourceDefinition(kind, plural, version string) *apiextensionsv1.CustomResourceDefinition {
	const group = "source.toolkit.fluxcd.io"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
				},
			}},
		},
	}
}

// startController runs kustomize-controller until the suite ends. Its log is printed if the suite fails.
func startController(ctx context.Context, kubeconfig []byte) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(file, kubeconfig, 0o600)).To(Succeed())
	program := exec.Command(filepath.Join(envtest.Root(), "bin", "kustomize-controller"),
		"--enable-leader-election=false", "--watch-all-namespaces", "--metrics-addr="+ports.ForTest(GinkgoT()), "--health-addr="+ports.ForTest(GinkgoT()),
		"--events-addr=", "--interval-jitter-percentage=0", "--requeue-dependency=1s", "--log-level=info")
	log := &logtest.Log{}
	program.Env = append(os.Environ(), "KUBECONFIG="+file, "RUNTIME_NAMESPACE="+system)
	program.Stdout, program.Stderr = log, log
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Expect(program.Start()).To(Succeed(), "make bin/kustomize-controller builds it")
	DeferCleanup(func() {
		_ = program.Process.Signal(syscall.SIGTERM) // it may already have exited
		_ = program.Wait()
		if CurrentSpecReport().Failed() || GinkgoT().Failed() {
			AddReportEntry("the log of kustomize-controller", log.String())
		}
	})
}

// Each spec starts a new manager, since a process stops with the spec that started it.
var _ = BeforeEach(func() { manager = start() })

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() {
		AddReportEntry("the log of the manager", manager.Log(), ReportEntryVisibilityFailureOrVerbose)
	}
})
