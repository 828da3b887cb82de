// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package processes defines how to start each process of a Herald installation on one machine, and when it is ready:
// etcd, kube-apiserver, kube-controller-manager, an S3 store, the simulated platforms, and Herald's manager and
// apiserver. All of them listen only on loopback addresses. The local run and the benchmarks use the same processes.
package processes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/ports"
)

// Names of the processes. Each has a port of the same name, except Manager and APIServer.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	Store                 = "store"
	Sandbox               = "sandbox"
	Bluesky               = "bluesky"
	Manager               = "manager"
	APIServer             = "apiserver"
)

// The other ports.
const (
	Site             = "site"
	ManagerMetrics   = "manager-metrics"
	ManagerWebhook   = "manager-webhook"
	APIServerMetrics = "apiserver-metrics"

	etcdPeer        = "etcd-peer"
	managerHealth   = "manager-health"
	apiserverHealth = "apiserver-health"
)

var portNames = []string{
	Etcd, etcdPeer, KubeAPIServer, KubeControllerManager, Store, Sandbox, Site, ManagerMetrics, managerHealth, ManagerWebhook,
	APIServerMetrics, apiserverHealth,
}

const (
	// Bucket is the store's only bucket.
	Bucket = "herald-media"
	// SystemNamespace is the namespace of Herald's own objects: its service accounts and the manager's lease.
	SystemNamespace = "herald-system"
)

// Setup is the configuration that the processes share. Prepare completes it.
type Setup struct {
	// Assets is the folder with etcd, kube-apiserver and kube-controller-manager. Bin is the folder with Herald's
	// programs, and with kube-controller-manager if it is not in Assets.
	Assets, Bin string
	// Dir is the folder for state.
	Dir string
	// SitePort is the port of the site; zero means any.
	SitePort int
	// MorePorts are more names that can be passed to Address.
	MorePorts []string
	// Platforms are the sandbox's platforms.
	Platforms []v1alpha1.Platform
	// Bluesky is the folder with Bluesky's own server: test/bluesky, once it is installed. If it is empty, the sandbox
	// takes its place.
	Bluesky string
	// Namespace is the default namespace in the administrator's kubeconfig.
	Namespace string
	// EditManager and EditAPIServer, if set, edit the configurations of the two processes.
	EditManager   func(*configv1alpha1.ManagerConfiguration)
	EditAPIServer func(*configv1alpha1.APIServerConfiguration)

	ports map[string]int
}

// Prepare chooses ports and writes all files that the processes read.
func (s *Setup) Prepare() error {
	for _, program := range []string{Etcd, KubeAPIServer} {
		if err := isProgram(filepath.Join(s.Assets, program)); err != nil {
			return fmt.Errorf("%w\nput it there, or unset KUBEBUILDER_ASSETS and run make again, which builds it", err)
		}
	}
	if err := isProgram(s.controllerManager()); err != nil {
		return fmt.Errorf("%w\nrun make again, which builds it (`make controlplane`)", err)
	}
	var err error
	names := append(slices.Clone(portNames), s.MorePorts...)
	if s.Bluesky != "" {
		names = append(names, Bluesky)
	}
	if s.ports, err = choosePorts(s.path("ports.json"), names, s.SitePort); err != nil {
		return err
	}
	if s.SitePort != 0 {
		s.ports[Site] = s.SitePort
	}
	if err := s.writeCredentials(); err != nil {
		return err
	}
	if _, err := s.StoreKey(); err != nil {
		return err
	}
	return s.Configure()
}

func isProgram(path string) error {
	info, err := os.Stat(path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = errors.New("it is not a program")
	}
	if err != nil {
		return fmt.Errorf("no usable %s: %w", path, err)
	}
	return nil
}

// Address returns the address that a process listens on, given the name of the port.
func (s *Setup) Address(port string) string { return ports.Address(s.ports[port]) }

// URL returns the URL of a process that serves HTTP without TLS.
func (s *Setup) URL(port string) string { return "http://" + s.Address(port) }

// Kubeconfig returns the path of an identity's kubeconfig.
func (s *Setup) Kubeconfig(identity string) string {
	if identity == Admin {
		return s.path("kubeconfig")
	}
	return s.path(identity + ".kubeconfig")
}

func (s *Setup) path(name string) string          { return filepath.Join(s.Dir, name) }
func (s *Setup) keyFile() string                  { return s.path("tls.key") }
func (s *Setup) certificateFile() string          { return s.path("tls.crt") }
func (s *Setup) tokenFile() string                { return s.path("tokens.csv") }
func (s *Setup) storeKeyFile() string             { return s.path("store-key.json") }
func (s *Setup) clientSecretFile() string         { return s.path("client-secret") }
func (s *Setup) configFile(process string) string { return s.path(process + ".yaml") }

// PlatformURL returns the URL of a simulated platform.
func (s *Setup) PlatformURL(platform v1alpha1.Platform) string {
	return s.URL(Sandbox) + "/" + string(platform)
}
