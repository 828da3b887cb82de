// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/herald-social/herald/hack/local/pki"
	"github.com/herald-social/herald/hack/local/supervisor"
	"github.com/herald-social/herald/hack/local/workspace"
)

// Graces are how long a process may take to end in order before it is killed. Manager and apiserver get longer: they
// finish what they have begun.
const (
	heraldGrace = 30 * time.Second
	serverGrace = 10 * time.Second
)

// disabledAdmission are the admission plugins that concern workloads, of which there are none here.
var disabledAdmission = []string{
	"ServiceAccount", "Priority", "TaintNodesByCondition", "PodSecurity", "RuntimeClass", "DefaultTolerationSeconds",
	"DefaultStorageClass", "StorageObjectInUseProtection", "PersistentVolumeClaimResize", "DefaultIngressClass",
}

func (s settings) etcdSpec() supervisor.Spec {
	client, peer := "https://"+s.address(portEtcd), "https://"+s.address(portEtcdPeer)
	return supervisor.Spec{Name: "etcd", Path: s.etcd, Grace: serverGrace, Args: []string{
		"--name=herald",
		"--data-dir=" + s.workspace.State("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=herald=" + peer,
		"--client-cert-auth=true",
		"--trusted-ca-file=" + pki.CA(s.pki()),
		"--cert-file=" + pki.Cert(s.pki(), certEtcd),
		"--key-file=" + pki.Key(s.pki(), certEtcd),
		"--peer-client-cert-auth=true",
		"--peer-trusted-ca-file=" + pki.CA(s.pki()),
		"--peer-cert-file=" + pki.Cert(s.pki(), certEtcd),
		"--peer-key-file=" + pki.Key(s.pki(), certEtcd),
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}}
}

// kubeAPIServerSpec raises the limits on requests in flight from 400 and 200: whoever measures Herald here should find
// Herald's limits, not these.
func (s settings) kubeAPIServerSpec() supervisor.Spec {
	return supervisor.Spec{Name: kubeAPIServer, Path: s.kubeAPIServer, Grace: serverGrace, Args: []string{
		"--etcd-servers=https://" + s.address(portEtcd),
		"--etcd-cafile=" + pki.CA(s.pki()),
		"--etcd-certfile=" + pki.Cert(s.pki(), certEtcdClient),
		"--etcd-keyfile=" + pki.Key(s.pki(), certEtcdClient),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + s.port(portKubeAPIServer),
		"--tls-cert-file=" + pki.Cert(s.pki(), certKubeAPIServer),
		"--tls-private-key-file=" + pki.Key(s.pki(), certKubeAPIServer),
		"--client-ca-file=" + pki.CA(s.pki()),
		"--anonymous-auth=false",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + filepath.Join(s.pki(), pki.ServiceAccountKey),
		"--service-account-signing-key-file=" + filepath.Join(s.pki(), pki.ServiceAccountKey),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--endpoint-reconciler-type=none",
		"--disable-admission-plugins=" + strings.Join(disabledAdmission, ","),
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=1500",
		"--profiling=false",
	}}
}

func (s settings) storeSpec() supervisor.Spec {
	return supervisor.Spec{Name: "store", Path: s.store, Grace: serverGrace, Args: []string{
		"--listen=" + s.address(portStore),
		"--data-dir=" + s.workspace.State("store"),
		"--credentials=" + s.storeKeyFile(),
		"--bucket=" + mediaBucket,
	}}
}

func (s settings) sandboxSpec() supervisor.Spec {
	return supervisor.Spec{Name: "sandbox", Path: s.sandbox, Grace: serverGrace, Args: []string{
		"--listen", s.address(portSandbox),
		"--state-dir", s.workspace.State("sandbox"),
	}}
}

// mediaFlags tell manager and apiserver of the store. Browsers and clients on this machine reach it by the same address.
func (s settings) mediaFlags() []string {
	return []string{
		"--media-endpoint", "http://" + s.address(portStore),
		"--media-bucket", mediaBucket,
		"--media-credentials", s.storeKeyFile(),
		"--media-path-style",
	}
}

// managerSpec gives the manager an identity that outlives it: started again, it still holds its lease.
func (s settings) managerSpec() supervisor.Spec {
	return supervisor.Spec{Name: "manager", Path: s.herald, Grace: heraldGrace, Args: append([]string{
		"manager",
		"--kubeconfig", s.kubeconfig(certManager),
		"--platforms-config", s.platformsFile(),
		"--leader-election-namespace", systemNamespace,
		"--leader-identity", "local-manager",
		"--metrics-bind-address", s.address(portManagerMetrics),
		"--health-probe-bind-address", s.address(portManagerHealth),
		"--webhook-bind-address", s.address(portManagerWebhook),
		"--webhook-hosts", "127.0.0.1",
	}, s.mediaFlags()...)}
}

func (s settings) apiserverSpec() supervisor.Spec {
	return supervisor.Spec{Name: "apiserver", Path: s.herald, Grace: heraldGrace, Args: append([]string{
		"apiserver",
		"--kubeconfig", s.kubeconfig(certAPIServer),
		"--listen", workspace.Address(s.site),
		"--site-url", s.siteURL(),
		"--requests-per-minute", "0",
		"--platforms-config", s.platformsFile(),
		"--metrics-bind-address", s.address(portAPIServerMetrics),
		// No load balancer has to notice first that it goes away.
		"--shutdown-delay", "0s",
	}, s.mediaFlags()...)}
}

func (s settings) port(name string) string {
	_, port, _ := strings.Cut(s.address(name), ":")
	return port
}

// isOurs recognises a process of an earlier run by its command line: one of our programs, told to use this checkout's
// state. The line is looked at as a whole, since not every system tells where an argument ends.
func isOurs(w workspace.Workspace) func(commandLine []string) bool {
	state := w.State() + string(filepath.Separator)
	return func(commandLine []string) bool {
		line := strings.Join(commandLine, " ")
		for _, name := range []string{"etcd", kubeAPIServer, "herald-store", "herald-sandbox", "herald"} {
			_, arguments, ok := strings.Cut(line, string(filepath.Separator)+name+" ")
			if ok && strings.Contains(arguments, state) {
				return true
			}
		}
		return false
	}
}
