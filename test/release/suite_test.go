// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release_test runs both of Herald's processes as a release with its own name and namespace, with only the
// chart's permissions, for some of the cluster's teams, and without a store for files.
package release_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/test/chart"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/suite"
)

func TestRelease(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "a release of another name, in another namespace")
}

// The release, its namespace, and the namespaces of two teams: one that it serves and one that it does not.
const (
	release   = "outreach"
	system    = "social"
	served    = "team-acme"
	elsewhere = "team-other"
)

var (
	admin   client.Client
	sandbox sandboxtest.Client
	folder  string
	// site and webhook are the addresses of the API and of the webhook; healths and metrics are the addresses of both
	// processes' health and metrics ports.
	site, webhook    string
	healths, metrics map[string]string
	// traces receives the traces of both processes; logs contains their logs.
	traces = &collector{}
	logs   = map[string]*gbytes.Buffer{}
	// configs are the processes' configurations.
	configs = map[string]interface {
		Shared() *configv1alpha1.Common
	}{}
)

var _ = BeforeSuite(func(ctx SpecContext) {
	folder = GinkgoT().TempDir()
	out, err := exec.CommandContext(ctx, "go", "build", "-o", folder+"/", "../../cmd/...").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	env := suite.Start()
	admin = env.Client
	createNamespace(ctx, system)
	rights, admission := writeChart(ctx)
	Expect(cluster.ApplyFolders(ctx, admin, rights)).To(Succeed())
	startSandbox()
	traces.start()
	healths, metrics = map[string]string{}, map[string]string{}
	common := func(process string) configv1alpha1.Common {
		kubeconfig := suite.Must(env.Kubeconfig("system:serviceaccount:"+system+":"+release+"-"+process, system))
		Expect(os.WriteFile(filepath.Join(folder, process+".kubeconfig"), kubeconfig, 0o600)).To(Succeed())
		health, metric := ports.ForTest(GinkgoT()), ports.ForTest(GinkgoT())
		healths[process], metrics[process] = "http://"+health, "https://"+metric
		return configv1alpha1.Common{
			Health:    configv1alpha1.Endpoint{BindAddress: health},
			Metrics:   configv1alpha1.Metrics{Endpoint: configv1alpha1.Endpoint{BindAddress: metric}},
			Profiling: configv1alpha1.Endpoint{BindAddress: ports.ForTest(GinkgoT())},
			Tracing:   configv1alpha1.Tracing{Endpoint: traces.URL},
			Platforms: configv1alpha1.Platforms{X: &configv1alpha1.Platform{ClientID: "test"}, Sandbox: configv1alpha1.Sandbox{URL: sandbox.URL}},
		}
	}
	manager, apiserver := configv1alpha1.DefaultManager(), configv1alpha1.DefaultAPIServer()
	manager.Common, apiserver.Common = common("manager"), common("apiserver")
	manager.ReleaseName = release
	manager.Webhook.BindAddress, manager.Webhook.Hosts = ports.ForTest(GinkgoT()), []string{"127.0.0.1"}
	webhook = "https://" + manager.Webhook.BindAddress
	apiserver.BindAddress = ports.ForTest(GinkgoT())
	apiserver.Shutdown.Delay.Duration = 0
	site = "http://" + apiserver.BindAddress
	Expect(cluster.ApplyWebhook(ctx, admin, admission, webhook)).To(Succeed())
	configs["manager"], configs["apiserver"] = manager, apiserver
	startHerald("manager", manager)
	startHerald("apiserver", apiserver)
})

// writeChart writes the chart's objects for the release: a folder with all of them except the webhook configuration,
// and a file with the webhook configuration. The CRDs are already installed, and Deployments get no pods because no
// controller runs here.
func writeChart(ctx context.Context) (rights, admission string) {
	GinkgoHelper()
	objects := suite.Must(chart.Render(ctx, release, system, "minimal-values.yaml"))
	rights, admission = filepath.Join(folder, "rights"), filepath.Join(folder, "webhook.yaml")
	Expect(os.Mkdir(rights, 0o700)).To(Succeed())
	for i, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			continue
		}
		file := filepath.Join(rights, fmt.Sprintf("%03d.yaml", i))
		if object.GetKind() == "ValidatingWebhookConfiguration" {
			file = admission
		}
		data := suite.Must(yaml.Marshal(object))
		Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
	}
	return rights, admission
}

func startSandbox() {
	GinkgoHelper()
	address := ports.ForTest(GinkgoT())
	sandbox = sandboxtest.Client{URL: "http://" + address}
	start("herald-sandbox", "--listen", address, "--state-dir", filepath.Join(folder, "sandbox"))
	Eventually(func(ctx context.Context) error {
		_, err := sandbox.Calls(ctx, "x")
		return err
	}).WithContext(context.Background()).Should(Succeed())
}

// startHerald starts a process with its configuration and waits until it is ready.
func startHerald(process string, config any) {
	GinkgoHelper()
	file := writeConfig(process, config)
	out, err := exec.Command(filepath.Join(folder, "herald"), "config", "check", file).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	start("herald", process, "--log-format", "json", "--config", file, "--kubeconfig", filepath.Join(folder, process+".kubeconfig"), "--namespace", served)
	Eventually(statusOf).WithArguments(healths[process] + "/readyz").WithTimeout(3 * time.Minute).Should(Equal(http.StatusOK))
}

// writeConfig writes a process's configuration to a file.
func writeConfig(process string, config any) (file string) {
	GinkgoHelper()
	data := suite.Must(yaml.Marshal(config))
	file = filepath.Join(folder, process+".yaml")
	Expect(os.WriteFile(file+".new", data, 0o600)).To(Succeed())
	Expect(os.Rename(file+".new", file)).To(Succeed())
	return file
}

// start runs a program until the suite is over, with its log in the report.
func start(program string, args ...string) {
	GinkgoHelper()
	cmd := exec.Command(filepath.Join(folder, program), args...)
	log := gbytes.NewBuffer()
	logs[args[0]] = log
	cmd.Stdout, cmd.Stderr = GinkgoWriter, io.MultiWriter(log, GinkgoWriter)
	cmd.Env = append(os.Environ(), "OTEL_BSP_SCHEDULE_DELAY=100") // in ms
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Expect(cmd.Start()).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	DeferCleanup(func() {
		Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed(), "%s ended by itself", program)
		Eventually(done).Should(Receive(BeNil()), fmt.Sprintf("%s %v", program, args))
	})
}

func statusOf(url string) (int, error) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// createNamespace creates a namespace without a team.
func createNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
}

// collector receives traces through OTLP over HTTP.
type collector struct {
	*httptest.Server

	mu sync.Mutex
	// spans contains "SERVICE: NAME" for each span, by trace id; text is everything received.
	spans map[string][]string
	text  strings.Builder
}

func (c *collector) start() {
	c.spans = map[string][]string{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer GinkgoRecover()
		Expect(r.URL.Path).To(Equal("/v1/traces"))
		body := suite.Must(io.ReadAll(r.Body))
		var data tracepb.TracesData
		Expect(proto.Unmarshal(body, &data)).To(Succeed())
		c.export(&data)
	}))
	DeferCleanup(c.Close)
}

func (c *collector) export(data *tracepb.TracesData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.WriteString(prototext.Format(data))
	for _, from := range data.ResourceSpans {
		service := ""
		for _, a := range from.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range from.ScopeSpans {
			for _, span := range scope.Spans {
				trace := hex.EncodeToString(span.TraceId)
				c.spans[trace] = append(c.spans[trace], service+": "+span.Name)
			}
		}
	}
}

// of returns a trace's spans.
func (c *collector) of(trace string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans[trace])
}

// said returns the text of all exported traces.
func (c *collector) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}
