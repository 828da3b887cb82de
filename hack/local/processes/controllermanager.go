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

// controllers are those of Kubernetes' own that Herald relies on in a cluster: what is in a namespace goes with it, what belongs to an
// object goes with it, quotas are counted, and roles gather the rules of others. The rest is about workloads, of which there are
// none here.
var controllers = []string{
	"namespace-controller", "garbage-collector-controller", "resourcequota-controller", "clusterrole-aggregation-controller",
}

// ControllerManagerArgs are the arguments of a kube-controller-manager that is alone, that runs only what Herald relies on, and that
// answers on a port of the loopback.
func ControllerManagerArgs(kubeconfig string, port int, more ...string) []string {
	return append([]string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		// Its only client is this machine's. The limit is there to spare servers that many share.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--concurrent-namespace-syncs=4",
		"--concurrent-gc-syncs=4",
		"--concurrent-resource-quota-syncs=2",
		"--profiling=false",
	}, more...)
}

// controllerManager is the path of the program: archives of setup-envtest do not hold it.
func (s *Setup) controllerManager() string {
	if path := filepath.Join(s.Assets, KubeControllerManager); isProgram(path) == nil {
		return path
	}
	return filepath.Join(s.Bin, KubeControllerManager)
}

// KubeControllerManager is what deletes and counts in the control plane. Its first look at the resources that there are is to find
// Herald's, for the next one comes half a minute later: it is to be started when they are installed.
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
