// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/hack/local/supervisor"
)

// controllers are the Kubernetes controllers that Herald relies on in a cluster: they delete the content of namespaces,
// garbage-collect dependents, count quotas, and aggregate roles. The other controllers are for workloads, which do not
// exist here.
var controllers = []string{
	"namespace-controller", "garbage-collector-controller", "resourcequota-controller", "clusterrole-aggregation-controller",
}

// ControllerManagerArgs returns the arguments of a single kube-controller-manager, which runs only the
// controllers that Herald relies on, and serves on a loopback port.
func ControllerManagerArgs(kubeconfig string, port int, more ...string) []string {
	return append([]string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		// All clients are on this machine. The limit is meant to protect shared servers.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--concurrent-namespace-syncs=4",
		"--concurrent-gc-syncs=4",
		"--concurrent-resource-quota-syncs=2",
		"--profiling=false",
	}, more...)
}

// controllerManager returns the path of kube-controller-manager, which setup-envtest's archives do not contain.
func (s *Setup) controllerManager() string {
	if path := filepath.Join(s.Assets, KubeControllerManager); isProgram(path) == nil {
		return path
	}
	return filepath.Join(s.Bin, KubeControllerManager)
}

// KubeControllerManager deletes and counts objects in the control plane. Start it once Herald's CRDs are installed: its
// first discovery must find them, because the next one is 30 seconds later.
func (s *Setup) KubeControllerManager() supervisor.Spec {
	return supervisor.Spec{
		Name: KubeControllerManager, Path: s.controllerManager(), Grace: serverGrace, Ready: s.controllersReady,
		Args: ControllerManagerArgs(s.Kubeconfig(KubeControllerManager), s.ports[KubeControllerManager],
			"--tls-cert-file="+s.certificateFile(), "--tls-private-key-file="+s.keyFile()),
	}
}

func (s *Setup) controllersReady(ctx context.Context) error {
	pair, err := s.TLSConfig()
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pair.RootCAs, MinVersion: tls.VersionTLS12}}}
	return get(ctx, client, "https://"+ports.Address(s.ports[KubeControllerManager])+"/healthz")
}
