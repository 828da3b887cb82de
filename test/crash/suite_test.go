// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crash_test kills the manager and the API server, as kill -9 does, at failpoints of the delivery protocol and
// at random times. It also cuts the links between them, the platforms and the store. The sandbox's counts and the API
// server's state then show the posts' outcomes. LONG=1 runs the long campaign.
package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/sandboxtest"
	"github.com/herald-social/herald/test/storetest"
)

func TestCrash(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Crash matrix")
}

const repository = "../.."

var (
	long   = os.Getenv("LONG") != ""
	folder string
	k8s    client.Client
	// kubernetes bypasses the proxy, like k8s.
	kubernetes *rest.Config
	platform   sandboxtest.Client
	serial     atomic.Int64
	// toKubernetes, toPlatform and toStore are the proxies between every manager and its servers.
	toKubernetes, toPlatform, toStore *proxy
	points                            *hook
	files                             store.Config
	// apiServer and etcd are also killed.
	apiServer, etcd *server
)

var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(5 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	Expect(os.Getenv("KUBEBUILDER_ASSETS")).NotTo(BeEmpty(), "set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver; `make test-crash` does")
	folder = GinkgoT().TempDir()
	out, err := exec.Command("go", "build", "-tags", "crashpoints", "-o", folder+"/", repository+"/cmd/...").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))

	DeferCleanup(expectNoFailures)
	scheme := runtime.NewScheme()
	Expect(corev1.AddToScheme(scheme)).To(Succeed())
	Expect(coordinationv1.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	env := &envtest.Environment{CRDDirectoryPaths: []string{definitions}, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	Expect(err).NotTo(HaveOccurred())
	kubernetes = config
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
	k8s, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	apiServer, etcd = adopt("kube-apiserver"), adopt("etcd")
	DeferCleanup(etcd.end)
	DeferCleanup(apiServer.end)
	toKubernetes, err = newProxy(config.Host[strings.LastIndex(config.Host, "/")+1:])
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(toKubernetes.close)
	kubeconfig := strings.Replace(string(env.KubeConfig), toKubernetes.target, toKubernetes.address(), 1)
	Expect(kubeconfig).To(ContainSubstring(toKubernetes.address()))
	Expect(os.WriteFile(filepath.Join(folder, "kubeconfig"), []byte(kubeconfig), 0o600)).To(Succeed())
	points = newHook()
	DeferCleanup(points.close)
	Expect(k8s.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "herald-system"}})).To(Succeed())

	startSandbox()
	files = storetest.Start(GinkgoT())
	toStore, err = newProxy(files.Endpoint)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(toStore.close)
	credentials := fmt.Sprintf(`{"accessKey":%q,"secretKey":%q}`, files.AccessKey, files.SecretKey)
	Expect(os.WriteFile(filepath.Join(folder, "store-key.json"), []byte(credentials), 0o600)).To(Succeed())
	writeConfiguration()
	trustReceivers()
})

// If a spec fails, print the last log lines of the managers and the API server, because the directory is removed.
var _ = JustAfterEach(func() {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, name := range []string{"manager", "kube-apiserver"} {
		if text, err := os.ReadFile(inFolder(name + ".log")); err == nil {
			AddReportEntry("the end of the log of "+name, string(text[max(0, len(text)-maxPrintedLog):]), ReportEntryVisibilityFailureOrVerbose)
		}
	}
})

// panicked matches the beginning of a panic in a log.
var panicked = regexp.MustCompile(`(?m)^(panic|fatal error): .*|^.*Observed a panic.*`)

// expectNoFailures expects that no program has panicked, or exited by itself.
func expectNoFailures() {
	Expect(unexpected.list()).To(BeEmpty(), "programs that no test stopped")
	logs, err := filepath.Glob(inFolder("*.log"))
	Expect(err).NotTo(HaveOccurred())
	Expect(logs).NotTo(BeEmpty())
	for _, log := range logs {
		if name := strings.TrimSuffix(filepath.Base(log), ".log"); name == apiServer.name || name == etcd.name {
			continue // kube-apiserver logs aborted requests as panics
		}
		text, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(panicked.Find(text))).To(BeEmpty(), log)
	}
}

// maxPrintedLog is the maximum number of bytes of the logs to print if a spec fails.
const maxPrintedLog = 8_000

func startSandbox() {
	address := ports.ForTest(GinkgoT())
	platform = sandboxtest.Client{URL: "http://" + address}
	server := start("herald-sandbox", "sandbox", nil, "--listen", address, "--state-dir", filepath.Join(folder, "sandbox"))
	DeferCleanup(func() { server.kill() })
	Eventually(func() error {
		resp, err := http.Get(platform.URL + "/_control/calls")
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}).Should(Succeed())
	var err error
	toPlatform, err = newProxy(address)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(toPlatform.close)
}

// writeConfiguration writes the configuration file that every manager reads, including those of earlier versions. It
// contains only the sections that the suite sets, since an earlier version may not know the others.
func writeConfiguration() {
	config := managerConfiguration()
	set := []string{"apiVersion", "kind", "leaderElection", "health", "metrics", "webhook", "media", "platforms"}
	writeSections(config, present.configuration, set...)
	config.Delivery.ArmCrowds = true
	writeSections(config, arming.configuration, append(set, "delivery")...)
	config.Delivery.ArmCrowds = false
	config.Delivery.ShareUploads, config.Concurrency.Uploads = true, 1
	writeSections(config, sharing.configuration, append(set, "delivery", "concurrency")...)
	config.Delivery.ShareUploads, config.Delivery.Shards = false, 4
	writeSections(config, sharded.configuration, append(set, "delivery")...)
	config.Delivery.Shards = 1
	config.Retention.LeastInCluster.Duration = 0
	writeSections(config, sweeping.configuration, append(set, "retention")...)
}

// managerConfiguration returns the configuration of every manager. The lease is short, so a manager that cannot reach
// the Kubernetes API exits while a spec still waits.
func managerConfiguration() *configv1alpha1.ManagerConfiguration {
	config := configv1alpha1.DefaultManager()
	lease := &config.LeaderElection
	lease.LeaseDuration.Duration, lease.RenewDeadline.Duration, lease.RetryPeriod.Duration = 15*time.Second, 10*time.Second, 2*time.Second
	config.Health.BindAddress, config.Metrics.BindAddress, config.Webhook.BindAddress = "0", "0", "0"
	config.Media = &configv1alpha1.Media{
		Endpoint: "http://" + toStore.address(), PublicEndpoint: "http://" + files.Endpoint, Region: "us-east-1", Bucket: files.Bucket,
		PathStyle: true, CredentialsFile: filepath.Join(folder, "store-key.json"),
	}
	config.Platforms.Sandbox = configv1alpha1.Sandbox{URL: "http://" + toPlatform.address(), PublicURL: platform.URL}
	sections := config.Platforms.Sections()
	for _, name := range connected() {
		section := &configv1alpha1.Platform{ClientID: "crash"}
		section.ListingLag.Duration = 2 * time.Second
		*sections[string(name)] = section
	}
	return config
}

// writeSections writes configuration sections to a file in the test's directory.
func writeSections(config *configv1alpha1.ManagerConfiguration, name string, sections ...string) {
	var written map[string]any
	data, err := json.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(data, &written)).To(Succeed())
	maps.DeleteFunc(written, func(name string, _ any) bool { return !slices.Contains(sections, name) })
	data, err = yaml.Marshal(written)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(inFolder(name), data, 0o600)).To(Succeed())
}
