// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/pki"
	"github.com/herald-social/herald/hack/local/workspace"
)

// kubeAPIServer is the name of the program, of its process, and of what belongs to it.
const kubeAPIServer = "kube-apiserver"

// What needs a port of its own beside the site.
const (
	portEtcd             = "etcd"
	portEtcdPeer         = "etcd-peer"
	portKubeAPIServer    = kubeAPIServer
	portStore            = "store"
	portSandbox          = "sandbox"
	portManagerMetrics   = "manager-metrics"
	portManagerHealth    = "manager-health"
	portManagerWebhook   = "manager-webhook"
	portAPIServerMetrics = "apiserver-metrics"
)

var portNames = []string{
	portEtcd, portEtcdPeer, portKubeAPIServer, portStore, portSandbox, portManagerMetrics, portManagerHealth, portManagerWebhook, portAPIServerMetrics,
}

// Names of certificates and, for clients, of kubeconfigs.
const (
	certKubeAPIServer = kubeAPIServer
	certEtcd          = "etcd"
	certEtcdClient    = "etcd-client"
	certAdmin         = "admin"
	certManager       = "manager"
	certAPIServer     = "apiserver"
)

// mediaBucket is the store's only one.
const mediaBucket = "herald-media"

// systemNamespace is where Herald's own objects live: its service accounts and the lease of the manager.
const systemNamespace = "herald-system"

// identities are the certificates of the local control plane. Manager and apiserver carry the names that their service
// accounts have in a cluster, so that they run here with exactly the rights that config/rbac gives them.
func identities() []pki.Identity {
	serviceAccount := func(name, account string) pki.Identity {
		return pki.Identity{
			Name:       name,
			CommonName: "system:serviceaccount:" + systemNamespace + ":" + account,
			Groups:     []string{"system:serviceaccounts", "system:serviceaccounts:" + systemNamespace},
		}
	}
	return []pki.Identity{
		{Name: certKubeAPIServer, CommonName: kubeAPIServer, Server: true},
		{Name: certEtcd, CommonName: "etcd", Server: true},
		{Name: certEtcdClient, CommonName: kubeAPIServer},
		{Name: certAdmin, CommonName: "herald-local-admin", Groups: []string{"system:masters"}},
		serviceAccount(certManager, "herald-manager"),
		serviceAccount(certAPIServer, "herald-apiserver"),
	}
}

// settings are what the processes of one run need to know of each other.
type settings struct {
	programs
	workspace workspace.Workspace
	site      int
	ports     map[string]int
}

func (s settings) address(port string) string { return workspace.Address(s.ports[port]) }
func (s settings) siteURL() string            { return "http://" + workspace.Address(s.site) }
func (s settings) sandboxURL() string         { return "http://" + s.address(portSandbox) }
func (s settings) serverURL() string          { return "https://" + s.address(portKubeAPIServer) }
func (s settings) pki() string                { return s.workspace.State("pki") }
func (s settings) platformsFile() string      { return s.workspace.State("platforms.yaml") }
func (s settings) storeKeyFile() string       { return s.workspace.State("store-key.json") }

// kubeconfig is the file for people when the name is the admin's, and otherwise that of one process.
func (s settings) kubeconfig(name string) string {
	if name == certAdmin {
		return s.workspace.State("kubeconfig")
	}
	return s.workspace.State(name + ".kubeconfig")
}

// configure chooses ports and writes every file that the processes read.
func (a *app) configure(p programs, site int) (settings, error) {
	s := settings{programs: p, workspace: a.workspace, site: site}
	var err error
	if s.ports, err = workspace.ChoosePorts(a.workspace.State("ports.json"), portNames, site); err != nil {
		return s, err
	}
	if err := pki.Ensure(s.pki(), identities(), time.Now()); err != nil {
		return s, err
	}
	for _, name := range []string{certAdmin, certManager, certAPIServer} {
		namespace := systemNamespace
		if name == certAdmin {
			namespace = cluster.DemoNamespace
		}
		if err := pki.WriteKubeconfig(s.kubeconfig(name), s.serverURL(), s.pki(), name, namespace); err != nil {
			return s, err
		}
	}
	if err := s.writeStoreKey(); err != nil {
		return s, err
	}
	return s, s.writePlatforms()
}

// writeStoreKey makes the store's root key at the first run and keeps it: the bucket belongs to it.
func (s settings) writeStoreKey() error {
	if _, err := os.Stat(s.storeKeyFile()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	key, err := json.Marshal(map[string]string{"accessKey": "herald-local", "secretKey": rand.Text()})
	if err != nil {
		return err
	}
	return workspace.WriteFile(s.storeKeyFile(), append(key, '\n'), 0o600)
}

// platformConfig is how manager and apiserver reach one platform; here, that is the sandbox.
type platformConfig struct {
	APIURL           string `json:"apiURL"`
	WebURL           string `json:"webURL"`
	FacebookURL      string `json:"facebookURL"`
	UploadURL        string `json:"uploadURL"`
	ClientID         string `json:"clientID"`
	ClientSecretFile string `json:"clientSecretFile"`
	ListingLag       string `json:"listingLag"`
}

// writePlatforms points every platform to the sandbox. It knows any client and takes any secret. Its listings lag only
// when a test asks for it; the lag here is about what the real platforms show.
func (s settings) writePlatforms() error {
	secret := s.workspace.State("client-secret")
	if err := workspace.WriteFile(secret, []byte("herald-local\n"), 0o600); err != nil {
		return err
	}
	configs := map[string]platformConfig{}
	for _, platform := range demoPlatforms() {
		base := s.sandboxURL() + "/" + string(platform)
		configs[string(platform)] = platformConfig{
			APIURL: base, WebURL: base, FacebookURL: base + "/graph.facebook.com", UploadURL: base + "/rupload.facebook.com",
			ClientID: "herald-local", ClientSecretFile: secret, ListingLag: "5s",
		}
	}
	data, err := yaml.Marshal(configs)
	if err != nil {
		return err
	}
	return workspace.WriteFile(s.platformsFile(), data, 0o600)
}
