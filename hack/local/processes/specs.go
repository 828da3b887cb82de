// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/hack/local/supervisor"
)

// The times that a process may take to shut down before it is killed. The manager and the apiserver get longer, because
// they finish open calls and requests.
const (
	heraldGrace = 30 * time.Second
	serverGrace = 10 * time.Second
)

// disabledAdmission are the admission plugins for workloads, which do not exist here.
var disabledAdmission = []string{
	"ServiceAccount", "Priority", "TaintNodesByCondition", "PodSecurity", "RuntimeClass", "DefaultTolerationSeconds",
	"DefaultStorageClass", "StorageObjectInUseProtection", "PersistentVolumeClaimResize", "DefaultIngressClass",
}

// Etcd is the control plane's database. Only clients that have the control plane's key can connect.
func (s *Setup) Etcd() supervisor.Spec {
	client, peer := "https://"+s.Address(Etcd), "https://"+s.Address(etcdPeer)
	return supervisor.Spec{Name: Etcd, Path: filepath.Join(s.Assets, Etcd), Grace: serverGrace, Ready: s.etcdReady, Args: []string{
		"--name=herald",
		"--data-dir=" + s.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=herald=" + peer,
		"--client-cert-auth=true",
		"--trusted-ca-file=" + s.certificateFile(),
		"--cert-file=" + s.certificateFile(),
		"--key-file=" + s.keyFile(),
		"--peer-client-cert-auth=true",
		"--peer-trusted-ca-file=" + s.certificateFile(),
		"--peer-cert-file=" + s.certificateFile(),
		"--peer-key-file=" + s.keyFile(),
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}}
}

func (s *Setup) etcdReady(ctx context.Context) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", s.Address(Etcd))
	if err != nil {
		return err
	}
	return connection.Close()
}

// KubeAPIServer is the Kubernetes API. It allows more concurrent requests than the default 400 and 200, because a
// benchmark should find Herald's limits, not these.
func (s *Setup) KubeAPIServer(more ...string) supervisor.Spec {
	return supervisor.Spec{Name: KubeAPIServer, Path: filepath.Join(s.Assets, KubeAPIServer), Grace: serverGrace, Ready: s.kubeReady, Args: append([]string{
		"--etcd-servers=https://" + s.Address(Etcd),
		"--etcd-cafile=" + s.certificateFile(),
		"--etcd-certfile=" + s.certificateFile(),
		"--etcd-keyfile=" + s.keyFile(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.ports[KubeAPIServer]),
		"--tls-cert-file=" + s.certificateFile(),
		"--tls-private-key-file=" + s.keyFile(),
		"--token-auth-file=" + s.tokenFile(),
		"--anonymous-auth=false",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.keyFile(),
		"--service-account-signing-key-file=" + s.keyFile(),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--endpoint-reconciler-type=none",
		"--disable-admission-plugins=" + strings.Join(disabledAdmission, ","),
		"--profiling=false",
	}, more...)}
}

func (s *Setup) kubeReady(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig(Admin))
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return get(ctx, client, config.Host+"/readyz")
}

// Store is the S3-compatible store for media files.
func (s *Setup) Store() supervisor.Spec {
	return supervisor.Spec{Name: Store, Path: filepath.Join(s.Bin, "herald-store"), Grace: serverGrace, Ready: s.answers(Store, "/health"), Args: []string{
		"--listen=" + s.Address(Store),
		"--data-dir=" + s.path("store"),
		"--credentials=" + s.storeKeyFile(),
		"--bucket=" + Bucket,
	}}
}

// Sandbox runs the simulated platforms. By default, it keeps published posts in memory.
func (s *Setup) Sandbox(more ...string) supervisor.Spec {
	return supervisor.Spec{
		Name: Sandbox, Path: filepath.Join(s.Bin, "herald-sandbox"), Grace: serverGrace, Ready: s.answers(Sandbox, "/_control/calls"),
		Args: append([]string{"--listen", s.Address(Sandbox), "--site-url", s.URL(Sandbox)}, more...),
	}
}

// Manager is Herald's manager. Its leader identity never changes, so after a restart it still holds its lease.
func (s *Setup) Manager() supervisor.Spec {
	return s.herald(Manager, s.answers(managerHealth, "/readyz"), "--leader-identity", "local-manager")
}

// ManagerAs is another manager with a changed configuration and its own identity, which is also its name. Its health
// port is one of MorePorts.
func (s *Setup) ManagerAs(name string, edit func(*configv1alpha1.ManagerConfiguration)) (supervisor.Spec, error) {
	config := s.managerConfiguration()
	config.Health.BindAddress = s.Address(HealthPort(name))
	edit(config)
	spec := s.Manager()
	spec.Name, spec.Ready = name, s.answers(HealthPort(name), "/readyz")
	spec.Args = []string{Manager, "--kubeconfig", s.Kubeconfig(Manager), "--config", s.configFile(name), "--leader-identity", name}
	return spec, s.writeConfiguration(name, config)
}

// HealthPort returns the name of a process's port for probes.
func HealthPort(process string) string { return process + "-health" }

// APIServer is Herald's apiserver.
func (s *Setup) APIServer() supervisor.Spec {
	return s.herald(APIServer, s.answers(apiserverHealth, "/readyz"))
}

// herald returns one of Herald's own processes.
func (s *Setup) herald(name string, ready func(context.Context) error, more ...string) supervisor.Spec {
	args := []string{name, "--kubeconfig", s.Kubeconfig(name), "--config", s.configFile(name)}
	return supervisor.Spec{Name: name, Path: filepath.Join(s.Bin, "herald"), Grace: heraldGrace, Ready: ready, Args: append(args, more...)}
}

// answers returns a readiness check that requests a page and expects status 200.
func (s *Setup) answers(port, path string) func(context.Context) error {
	// Keep no connections, because the servers may be killed at any time.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) error { return get(ctx, client, s.URL(port)+path) }
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}
