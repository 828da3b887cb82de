// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stack starts what the benchmarks measure: a control plane of their own, the sandbox, and Herald's manager and
// apiserver, each a process of its own that ends with the benchmark.
package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/pki"
	"github.com/herald-social/herald/hack/local/process"
	"github.com/herald-social/herald/hack/local/workspace"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/sandboxtest"
)

// Identities in Kubernetes. Herald's processes have the rights that config/rbac gives them, and so has whoever does the
// same without Herald: both sides of a comparison pay the same for authorisation and fairness.
const (
	Admin     = "admin"
	Manager   = "manager"
	APIServer = "apiserver"
)

// What needs a port of its own.
const (
	portEtcd             = "etcd"
	portEtcdPeer         = "etcd-peer"
	portKube             = "kube-apiserver"
	portStore            = "store"
	portSandbox          = "sandbox"
	portSite             = "site"
	portManagerMetrics   = "manager-metrics"
	portManagerHealth    = "manager-health"
	portManagerWebhook   = "manager-webhook"
	portManagerPprof     = "manager-pprof"
	portAPIServerMetrics = "apiserver-metrics"
	portAPIServerPprof   = "apiserver-pprof"
	portPlain            = "plain"
)

var portNames = []string{
	portEtcd, portEtcdPeer, portKube, portStore, portSandbox, portSite,
	portManagerMetrics, portManagerHealth, portManagerWebhook, portManagerPprof, portAPIServerMetrics, portAPIServerPprof, portPlain,
}

const (
	systemNamespace = "herald-system"
	mediaBucket     = "herald-media"
	storeAccessKey  = "bench"
	storeSecretKey  = "bench-secret"
	certServer      = "server"
	certEtcdClient  = "etcd-client"
)

// Options are what a Stack is made of. Every field is required.
type Options struct {
	// Root is the checkout, for the resources and roles in config/.
	Root string
	// Dir takes the state and the logs.
	Dir string
	// Etcd, KubeAPIServer, Store, SandboxProgram and Herald are the paths of the programs.
	Etcd, KubeAPIServer, Store, SandboxProgram, Herald string
	// PostWorkers is how many posts the manager works on at once.
	PostWorkers int
	// Pprof lets manager and apiserver serve profiles.
	Pprof bool
	// Spawner starts the processes.
	Spawner *process.Spawner
}

// Stack is a control plane and the sandbox, and Herald while it is started.
type Stack struct {
	// Kubernetes reads and writes as an administrator, past every cache.
	Kubernetes client.Client
	// Config is how an administrator reaches the API server.
	Config *rest.Config
	// Sandbox are the simulated platforms.
	Sandbox sandboxtest.Client
	// ManagerFlags are given to the manager beside those that it needs, when it is started next.
	ManagerFlags []string

	options Options
	ports   map[string]int
	servers []*Process
	herald  []*Process
}

// Start starts the control plane and the sandbox. After an error nothing is left running.
func Start(ctx context.Context, options Options) (*Stack, error) {
	s := &Stack{options: options}
	if err := s.startServers(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) startServers(ctx context.Context) error {
	if err := s.configure(); err != nil {
		return err
	}
	etcd, err := s.serve(portEtcd, s.options.Etcd, s.etcdArgs()...)
	if err != nil {
		return err
	}
	kube, err := s.serve(portKube, s.options.KubeAPIServer, s.kubeArgs()...)
	if err != nil {
		return err
	}
	store, err := s.serve(portStore, s.options.Store, "--listen="+s.address(portStore), "--data-dir="+filepath.Join(s.options.Dir, "store"),
		"--credentials="+s.storeKeyFile(), "--bucket="+mediaBucket)
	if err != nil {
		return err
	}
	sandbox, err := s.serve(portSandbox, s.options.SandboxProgram, "--listen", s.address(portSandbox), "--log-level", "warn")
	if err != nil {
		return err
	}
	if err := kube.waitFor(ctx, s.kubeReady); err != nil {
		return errors.Join(err, errors.New(etcd.LogTail()))
	}
	if err := store.waitFor(ctx, answers("http://"+s.address(portStore)+"/health")); err != nil {
		return err
	}
	if err := sandbox.waitFor(ctx, answers(s.Sandbox.URL+"/_control/calls")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	config := filepath.Join(s.options.Root, "config")
	if err := cluster.ApplyFolders(ctx, s.Kubernetes, filepath.Join(config, "crd", "bases"), filepath.Join(config, "rbac")); err != nil {
		return err
	}
	return cluster.ApplyWebhook(ctx, s.Kubernetes, filepath.Join(config, "webhook", "webhook.yaml"), "https://"+s.address(portManagerWebhook))
}

func (s *Stack) serve(name, path string, args ...string) (*Process, error) {
	p, err := s.start(name, path, args...)
	if err == nil {
		s.servers = append(s.servers, p)
	}
	return p, err
}

// configure chooses ports and writes certificates, kubeconfigs and the platforms' addresses.
func (s *Stack) configure() error {
	var err error
	if s.ports, err = workspace.ChoosePorts(filepath.Join(s.options.Dir, "ports.json"), portNames, 0); err != nil {
		return err
	}
	serviceAccount := func(name string) pki.Identity {
		return pki.Identity{
			Name: name, CommonName: "system:serviceaccount:" + systemNamespace + ":herald-" + name,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + systemNamespace},
		}
	}
	identities := []pki.Identity{
		{Name: certServer, CommonName: certServer, Server: true},
		{Name: certEtcdClient, CommonName: "kube-apiserver"},
		{Name: Admin, CommonName: "bench", Groups: []string{"system:masters"}},
		serviceAccount(Manager), serviceAccount(APIServer),
	}
	if err := pki.Ensure(s.pki(), identities, time.Now()); err != nil {
		return err
	}
	for _, name := range []string{Admin, Manager, APIServer} {
		if err := pki.WriteKubeconfig(s.Kubeconfig(name), "https://"+s.address(portKube), s.pki(), name, systemNamespace); err != nil {
			return err
		}
	}
	if s.Config, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig(Admin)); err != nil {
		return err
	}
	s.Config.QPS = -1
	if s.Kubernetes, err = cluster.NewClient(s.Kubeconfig(Admin)); err != nil {
		return err
	}
	s.Sandbox = sandboxtest.Client{URL: "http://" + s.address(portSandbox)}
	var config strings.Builder
	for _, platform := range []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformYouTube} {
		fmt.Fprintf(&config, "%s: {apiURL: %[2]s, webURL: %[2]s, clientID: bench, listingLag: 5s}\n", platform, s.PlatformURL(platform))
	}
	key := fmt.Sprintf(`{"accessKey":%q,"secretKey":%q}`, storeAccessKey, storeSecretKey)
	if err := workspace.WriteFile(s.storeKeyFile(), []byte(key), 0o600); err != nil {
		return err
	}
	return workspace.WriteFile(s.platformsFile(), []byte(config.String()), 0o600)
}

func (s *Stack) address(port string) string { return workspace.Address(s.ports[port]) }
func (s *Stack) pki() string                { return filepath.Join(s.options.Dir, "pki") }
func (s *Stack) platformsFile() string      { return filepath.Join(s.options.Dir, "platforms.yaml") }

func (s *Stack) storeKeyFile() string { return filepath.Join(s.options.Dir, "store-key.json") }

// Store is the store of media files.
func (s *Stack) Store() (*store.Store, error) {
	return store.New(store.Config{
		Endpoint: s.address(portStore), Insecure: true, Bucket: mediaBucket, AccessKey: storeAccessKey, SecretKey: storeSecretKey, PathStyle: true,
	})
}

// Kubeconfig is the path of the kubeconfig of an identity.
func (s *Stack) Kubeconfig(identity string) string {
	return filepath.Join(s.options.Dir, identity+".kubeconfig")
}

// PlatformURL is the address of a simulated platform.
func (s *Stack) PlatformURL(platform v1alpha1.Platform) string {
	return s.Sandbox.URL + "/" + string(platform)
}

// PostsURL is where posts are created through Herald's REST API.
func (s *Stack) PostsURL() string { return "http://" + s.address(portSite) + "/api/v1/posts" }

// UploadURL is where addresses to upload files to are asked for.
func (s *Stack) UploadURL() string {
	return "http://" + s.address(portSite) + "/api/v1/media/upload-url"
}

// ManagerMetricsURL is the address of the manager's metrics.
func (s *Stack) ManagerMetricsURL() string {
	return "http://" + s.address(portManagerMetrics) + "/metrics"
}

// APIServerMetricsURL is the address of the apiserver's metrics.
func (s *Stack) APIServerMetricsURL() string {
	return "http://" + s.address(portAPIServerMetrics) + "/metrics"
}

// PlainAddress is kept free for the bare HTTP server.
func (s *Stack) PlainAddress() string { return s.address(portPlain) }

// ProfileURLs are the addresses below which the manager and the apiserver serve profiles, of those that are started, by
// name.
func (s *Stack) ProfileURLs() map[string]string {
	ports := map[string]string{Manager: portManagerPprof, APIServer: portAPIServerPprof}
	urls := map[string]string{}
	for _, p := range s.herald {
		urls[p.Name] = "http://" + s.address(ports[p.Name]) + "/debug/pprof"
	}
	return urls
}

// ResetSandbox removes everything that was published. Accounts and their tokens stay.
func (s *Stack) ResetSandbox(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Sandbox.URL+"/_control/reset", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s answers %s", request.URL, response.Status)
	}
	return nil
}

// Version is what the measured Herald calls itself.
func (s *Stack) Version(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, s.options.Herald, "version").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "herald ")
}

// Processes are all that run now.
func (s *Stack) Processes() []*Process { return slices.Concat(s.servers, s.herald) }

// Herald are the manager and the apiserver, of those that are started.
func (s *Stack) Herald() []*Process { return slices.Clone(s.herald) }

// Stop ends everything, the last started first.
func (s *Stack) Stop() error {
	err := s.StopHerald()
	for _, p := range slices.Backward(s.servers) {
		err = errors.Join(err, p.Stop())
	}
	s.servers = nil
	return err
}

func (s *Stack) kubeReady(ctx context.Context) error {
	config := rest.CopyConfig(s.Config)
	config.Timeout = 5 * time.Second
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return get(ctx, httpClient, config.Host+"/readyz")
}

// answers returns a question that succeeds once the address is answered with a success.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error { return get(ctx, http.DefaultClient, url) }
}

func get(ctx context.Context, c *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// disabledAdmission are the admission plugins that concern workloads, of which there are none here.
var disabledAdmission = []string{
	"ServiceAccount", "Priority", "TaintNodesByCondition", "PodSecurity", "RuntimeClass", "DefaultTolerationSeconds",
	"DefaultStorageClass", "StorageObjectInUseProtection", "PersistentVolumeClaimResize", "DefaultIngressClass",
}

func (s *Stack) etcdArgs() []string {
	clientURL, peerURL := "https://"+s.address(portEtcd), "https://"+s.address(portEtcdPeer)
	return []string{
		"--name=bench", "--data-dir=" + filepath.Join(s.options.Dir, "etcd"),
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=bench=" + peerURL,
		"--client-cert-auth=true", "--trusted-ca-file=" + pki.CA(s.pki()),
		"--cert-file=" + pki.Cert(s.pki(), certServer), "--key-file=" + pki.Key(s.pki(), certServer),
		"--peer-client-cert-auth=true", "--peer-trusted-ca-file=" + pki.CA(s.pki()),
		"--peer-cert-file=" + pki.Cert(s.pki(), certServer), "--peer-key-file=" + pki.Key(s.pki(), certServer),
		"--quota-backend-bytes=8589934592", "--log-level=warn",
	}
}

// kubeArgs raises the limits on requests in flight from 400 and 200, as the local run does: what is to be found are
// Herald's limits, not these. More collection workers make the removal of posts between two rounds quick.
func (s *Stack) kubeArgs() []string {
	return []string{
		"--etcd-servers=https://" + s.address(portEtcd), "--etcd-cafile=" + pki.CA(s.pki()),
		"--etcd-certfile=" + pki.Cert(s.pki(), certEtcdClient), "--etcd-keyfile=" + pki.Key(s.pki(), certEtcdClient),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.ports[portKube]),
		"--tls-cert-file=" + pki.Cert(s.pki(), certServer), "--tls-private-key-file=" + pki.Key(s.pki(), certServer),
		"--client-ca-file=" + pki.CA(s.pki()), "--anonymous-auth=false", "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + filepath.Join(s.pki(), pki.ServiceAccountKey),
		"--service-account-signing-key-file=" + filepath.Join(s.pki(), pki.ServiceAccountKey),
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
		"--disable-admission-plugins=" + strings.Join(disabledAdmission, ","),
		"--max-requests-inflight=3000", "--max-mutating-requests-inflight=1500", "--delete-collection-workers=16",
	}
}
