// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/herald-social/herald/hack/local/workspace"
)

const (
	// certificateLife is longer than any local run's state is kept.
	certificateLife = 10 * 365 * 24 * time.Hour
	// backdate allows for clocks that are set back a little.
	backdate = time.Hour
	// contextName is the name of the context in kubectl.
	contextName = "herald-local"
)

// Admin is the administrator's identity. The others are KubeControllerManager, Manager and APIServer.
const Admin = "admin"

// users are the Kubernetes user name and group of each identity. The manager and the apiserver have the names of their
// service accounts in a cluster, so they have exactly the permissions in config/rbac.
var users = map[string][2]string{
	Admin: {"herald-local-admin", "system:masters"},
	// The controller manager deletes and counts objects of all kinds. In a cluster, each of its controllers has its own
	// service account.
	KubeControllerManager: {"system:kube-controller-manager", "system:masters"},

	Manager:   {"system:serviceaccount:" + SystemNamespace + ":herald-manager", serviceAccountGroups},
	APIServer: {"system:serviceaccount:" + SystemNamespace + ":herald-apiserver", serviceAccountGroups},
}

const serviceAccountGroups = "system:serviceaccounts,system:serviceaccounts:" + SystemNamespace

// writeCredentials writes the tokens and kubeconfigs of all identities. The first call also creates the control plane's
// certificate.
func (s *Setup) writeCredentials() error {
	if err := s.ensureCertificate(time.Now()); err != nil {
		return fmt.Errorf("make the certificate of the local control plane: %w", err)
	}
	key, err := os.ReadFile(s.keyFile())
	if err != nil {
		return err
	}
	certificate, err := os.ReadFile(s.certificateFile())
	if err != nil {
		return err
	}
	var table strings.Builder
	for identity, user := range users {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(identity))
		token := hex.EncodeToString(mac.Sum(nil))
		fmt.Fprintf(&table, "%s,%s,%s,%q\n", token, user[0], identity, user[1])
		if err := s.writeKubeconfig(identity, token, certificate); err != nil {
			return err
		}
	}
	return workspace.WriteFile(s.tokenFile(), []byte(table.String()), 0o600)
}

// ensureCertificate creates a key and a self-signed certificate. All servers and clients of the control plane share it,
// so every user who can read the key has all permissions. The certificate is written last, to mark the pair as
// complete.
func (s *Setup) ensureCertificate(now time.Time) error {
	if _, err := os.Stat(s.certificateFile()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: contextName},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(certificateLife),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, certificate, certificate, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := workspace.WriteFile(s.keyFile(), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		return err
	}
	return workspace.WriteFile(s.certificateFile(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o644)
}

// TLSConfig returns the configuration for etcd clients.
func (s *Setup) TLSConfig() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(s.certificateFile(), s.keyFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func (s *Setup) writeKubeconfig(identity, token string, certificate []byte) error {
	config := api.NewConfig()
	config.Clusters[contextName] = &api.Cluster{Server: "https://" + s.Address(KubeAPIServer), CertificateAuthorityData: certificate}
	config.AuthInfos[identity] = &api.AuthInfo{Token: token}
	// Herald's own processes read their namespace from the context, as a pod does from its service account.
	namespace := SystemNamespace
	if identity == Admin {
		namespace = s.Namespace
	}
	config.Contexts[contextName] = &api.Context{Cluster: contextName, AuthInfo: identity, Namespace: namespace}
	config.CurrentContext = contextName
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", identity, err)
	}
	return workspace.WriteFile(s.Kubeconfig(identity), data, 0o600)
}

// StoreKey is the root key of the store.
type StoreKey struct {
	AccessKey string `json:"accessKey"`
	SecretKey string `json:"secretKey"`
}

// StoreKey returns the store's root key. The first call generates the key and stores it, because the bucket belongs to
// it.
func (s *Setup) StoreKey() (StoreKey, error) {
	key := StoreKey{AccessKey: contextName, SecretKey: rand.Text()}
	data, err := os.ReadFile(s.storeKeyFile())
	if err == nil {
		err = json.Unmarshal(data, &key)
		return key, err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return key, err
	}
	if data, err = json.Marshal(key); err != nil { //nolint:gosec // G117: the file is for the store, and only its owner can read it
		return key, err
	}
	return key, workspace.WriteFile(s.storeKeyFile(), append(data, '\n'), 0o600)
}
