// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission_test removes the admission webhook's prerequisites one at a time, and changes the CRDs under a
// running manager. It checks that nothing invalid is delivered and nothing valid is lost. The manager is a separate
// process with an installation's RBAC permissions.
package admission_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/managertest"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

func TestAdmissionFailures(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Admission that fails")
}

// The suite's team and its connection to X.
const (
	team       = "herald-demo"
	connection = "demo-x"
)

var (
	config       = filepath.Join(envtest.Root(), "config")
	admin        client.Client
	platform     sandboxtest.Client
	installation managertest.Installation
	// account is the X account that the connection is for.
	account sandboxtest.Account
	// warnings are the API server's warnings about requests that it accepted.
	warnings = &recorder{}
	serial   atomic.Int64
)

// recorder keeps warnings.
type recorder struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (r *recorder) HandleWarningHeader(_ int, _, text string) { r.texts = append(r.texts, text) }

var _ rest.WarningHandler = (*recorder)(nil)

var _ = BeforeSuite(func(ctx SpecContext) {
	env := suite.Start()
	Expect(apiextensionsv1.AddToScheme(env.Scheme)).To(Succeed())
	kubernetes := rest.CopyConfig(env.Config)
	kubernetes.WarningHandler = warnings
	admin = suite.Must(client.New(kubernetes, client.Options{Scheme: env.Scheme}))
	Expect(cluster.ApplyFolders(ctx, admin, filepath.Join(config, "rbac"))).To(Succeed())

	platform = sandboxtest.Start(GinkgoT())
	account = suite.Must(platform.Account(ctx, "x", sandbox.DemoAccounts()[0].ID, nil))
	installation = managertest.Installation{Env: env, Program: managertest.Build(GinkgoT()), SandboxURL: platform.URL}
})

// applyDemo applies the demo team, whose accounts are on the sandbox.
func applyDemo(ctx context.Context) {
	GinkgoHelper()
	data := suite.Must(os.ReadFile(filepath.Join(envtest.Root(), "charts", "herald", "files", "demo.yaml")))
	objects := suite.Must(cluster.ParseObjects(data))
	for _, object := range objects {
		err := admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("suite"), client.ForceOwnership)
		Expect(err).NotTo(HaveOccurred())
	}
	Eventually(func(g Gomega) {
		c := &v1alpha1.Connection{}
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: team, Name: connection}, c)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%+v", c.Status)
	}).Should(Succeed())
}

// manager is a running manager and its configuration.
type manager struct {
	*managertest.Process

	config *configv1alpha1.ManagerConfiguration
}

// startManager starts a manager and waits until it is ready. The manager stops with its spec or container.
func startManager(change ...func(*configv1alpha1.ManagerConfiguration)) *manager {
	GinkgoHelper()
	m := &manager{config: installation.Config(GinkgoT())}
	for _, c := range change {
		c(m.config)
	}
	m.Process = installation.Manager(GinkgoT(), m.config)
	Eventually(m.ready).Should(Succeed())
	return m
}

// ready checks the readiness probe, as a kubelet does.
func (m *manager) ready(g Gomega) {
	select {
	case <-m.Done():
		StopTrying("the manager has ended").Attach("log", m.Log()).Now()
	default:
	}
	resp, err := http.Get("http://" + m.config.Health.BindAddress + "/readyz")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resp.Body.Close()).To(Succeed())
	g.Expect(resp).To(HaveHTTPStatus(http.StatusOK))
}

// metric returns the value of a gauge without labels, or false if there is none.
func (m *manager) metric(g Gomega, name string) (float64, bool) {
	resp, err := http.Get("http://" + m.config.Metrics.BindAddress + "/metrics")
	g.Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	g.Expect(err).NotTo(HaveOccurred())
	if families[name] == nil {
		return 0, false
	}
	return families[name].GetMetric()[0].GetGauge().GetValue(), true
}

// expectMetrics waits until the webhook's metrics have these values.
func (m *manager) expectMetrics(served, trusted float64) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for name, want := range map[string]float64{"herald_webhook_served": served, "herald_webhook_trusted": trusted} {
			value, found := m.metric(g, name)
			g.Expect(found).To(BeTrue(), name)
			g.Expect(value).To(Equal(want), name)
		}
	}).Should(Succeed())
}

// post returns a new text post for the account on X. It is not applied.
func post(caption string) *v1alpha1.Post {
	n := serial.Add(1)
	return &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprintf("post-%d", n)},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText,
			Targets:  []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: connection}, Caption: fmt.Sprintf("%s %d", caption, n)}},
		},
	}
}

// tooLong is a caption that the schema accepts but X rejects.
var tooLong = strings.Repeat("long ", 60)

// condition returns a post's condition, or nil if it is absent.
func condition(ctx context.Context, g Gomega, p *v1alpha1.Post, kind string) *metav1.Condition {
	now := &v1alpha1.Post{}
	g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(p), now)).To(Succeed())
	return meta.FindStatusCondition(now.Status.Conditions, kind)
}

// expectInvalid waits until the reconciler rejects a post with the message.
func expectInvalid(ctx context.Context, p *v1alpha1.Post, says string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		accepted := condition(ctx, g, p, v1alpha1.ConditionAccepted)
		g.Expect(accepted).NotTo(BeNil())
		g.Expect(accepted.ObservedGeneration).To(Equal(p.Generation))
		g.Expect(string(accepted.Status)+" "+accepted.Reason).To(Equal("False "+v1alpha1.ReasonInvalid), accepted.Message)
		g.Expect(accepted.Message).To(ContainSubstring(says))
		stalled := condition(ctx, g, p, v1alpha1.ConditionStalled)
		g.Expect(stalled).NotTo(BeNil())
		g.Expect(stalled.Status).To(Equal(metav1.ConditionTrue))
	}).Should(Succeed())
}

// expectPosted waits until a post is published.
func expectPosted(ctx context.Context, p *v1alpha1.Post) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		published := condition(ctx, g, p, v1alpha1.ConditionPublished)
		g.Expect(published).NotTo(BeNil())
		g.Expect(published.Status).To(Equal(metav1.ConditionTrue), published.Message)
	}).Should(Succeed())
}

// calls returns the number of publishing calls to X.
func calls(ctx context.Context) int {
	GinkgoHelper()
	counts := suite.Must(platform.Calls(ctx, "x"))
	return counts["publish"]
}

// online returns the number of published posts with the text.
func online(ctx context.Context, text string) (n int) {
	GinkgoHelper()
	posts := suite.Must(platform.Posts(ctx, "x", account.ID))
	for _, p := range posts {
		if p.Text == text {
			n++
		}
	}
	return n
}
