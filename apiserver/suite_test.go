// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/realplatforms"
	"github.com/herald-social/herald/test/storetest"
)

var (
	// admin has all permissions; it acts for people and for the manager.
	admin client.WithWatch
	// adminConfig is the client configuration of admin.
	adminConfig *rest.Config
	// restricted is the apiserver's client configuration, with only the permissions in its generated role.
	restricted *rest.Config
	// files is the media store.
	files *store.Store
	// instance is the server that most tests use.
	instance *running
)

// TestMain also runs as the child process that converts an image.
func TestMain(m *testing.M) {
	if rendition.IsChild(os.Args[1:]) {
		os.Exit(rendition.DecodeMain(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func TestAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	RunSpecs(t, "apiserver")
}

var _ = BeforeSuite(func() {
	environment, err := envtest.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(environment.Stop)
	adminConfig = environment.Config
	admin, err = client.NewWithWatch(adminConfig, client.Options{Scheme: environment.Scheme})
	Expect(err).NotTo(HaveOccurred())

	files, err = store.New(storetest.Start(GinkgoT()))
	Expect(err).NotTo(HaveOccurred())
	restricted = asAPIServer()
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go playManager(ctx)
	instance = start(restricted)
	DeferCleanup(func() { instance.stop() })
})

// asAPIServer returns the configuration of a user with only the generated role, to whom the policies apply.
func asAPIServer() *rest.Config {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	readRole(filepath.Join("apiserver", "role.yaml"), 0, role)
	Expect(admin.Create(context.Background(), role)).To(Succeed())
	Expect(admin.Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   apiserverUser,
	})).To(Succeed())
	applyPolicies()
	config := rest.CopyConfig(adminConfig)
	config.Impersonate.UserName = envtest.APIServerAccount
	return config
}

// applyPolicies stores the policies for the apiserver. Of those for Secrets, only the rules for new Secrets apply,
// because this suite's installations have their own namespaces. Most policies are in force by the time the first spec
// starts.
func applyPolicies() {
	GinkgoHelper()
	manifests, err := os.ReadFile(filepath.Join("..", "config", "rbac", "policies.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for manifest := range strings.SplitSeq(string(manifests), "\n---\n") {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
		switch {
		case object.GetName() == "herald-apiserver-secrets" && object.GetKind() == "ValidatingAdmissionPolicy":
			rules, _, err := unstructured.NestedSlice(object.Object, "spec", "matchConstraints", "resourceRules")
			Expect(err).NotTo(HaveOccurred())
			rules[0].(map[string]any)["operations"] = []any{"CREATE"}
			Expect(unstructured.SetNestedSlice(object.Object, rules, "spec", "matchConstraints", "resourceRules")).To(Succeed())
		case strings.HasSuffix(object.GetName(), "-secrets") && object.GetName() != "herald-apiserver-secrets":
			continue
		}
		Expect(admin.Create(context.Background(), object)).To(Succeed())
	}
}

// running is a server under test.
type running struct {
	site    string
	private string
	metrics *prometheus.Registry
	cancel  context.CancelFunc
	done    chan error
	server  *apiserver.Server
}

// configure returns the configuration of a server on free ports.
func configure(config *rest.Config, edits ...func(*apiserver.Config)) apiserver.Config {
	GinkgoHelper()
	listen := func() net.Listener {
		var lc net.ListenConfig
		listener, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		return listener
	}
	c := apiserver.Config{
		Kubernetes:      config,
		UserAgent:       "apiserver-test",
		SiteURL:         "https://herald.example.com",
		Capabilities:    capabilities,
		MCP:             true,
		Version:         "test",
		Files:           files,
		Bucket:          files,
		Verify:          (&probe.Verifier{Store: files, Clock: clock.RealClock{}, Unconvertible: rendition.Unconvertible}).Verify,
		Listener:        listen(),
		HealthListener:  listen(),
		ShutdownTimeout: 10 * time.Second,
		Registry:        prometheus.NewRegistry(),
		Clock:           clock.RealClock{},
		Log:             slog.New(slog.NewTextHandler(GinkgoWriter, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

// start starts a server and waits until it is ready.
func start(config *rest.Config, edits ...func(*apiserver.Config)) *running {
	GinkgoHelper()
	r := run(configure(config, edits...))
	Eventually(func() int { return statusOf(r.private + "/readyz") }).Should(Equal(http.StatusOK))
	return r
}

// run starts a server.
func run(c apiserver.Config) *running {
	GinkgoHelper()
	server, err := apiserver.New(c)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{
		site:    "http://" + c.Listener.Addr().String(),
		private: "http://" + c.HealthListener.Addr().String(),
		metrics: c.Registry.(*prometheus.Registry),
		cancel:  cancel,
		done:    make(chan error, 1),
		server:  server,
	}
	go func() { r.done <- server.Run(ctx) }()
	return r
}

func (r *running) stop() {
	GinkgoHelper()
	r.cancel()
	Eventually(r.done, 15*time.Second).Should(Receive(Succeed()))
}

func statusOf(url string) int {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

// capabilities are those of the real platforms, because the contract is verified with the released limits.
var capabilities = realplatforms.All().Capabilities
