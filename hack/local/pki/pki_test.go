// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var testIdentities = []Identity{
	{Name: "server", CommonName: "server", Server: true},
	{Name: "manager", CommonName: "system:serviceaccount:a:b", Groups: []string{"system:serviceaccounts:a", "system:serviceaccounts"}},
}

func ensure(t *testing.T, dir string, identities []Identity, now time.Time) string {
	t.Helper()
	if err := Ensure(dir, identities, now); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(CA(dir))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEnsure(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		reason string
		change func(t *testing.T, dir string)
		ids    []Identity
		later  time.Duration
		kept   bool
	}{
		"the next start":     {"a kubeconfig that a person copied keeps working", nil, testIdentities, time.Hour, true},
		"near its end":       {"a run that lasts for weeks must not outlive its certificates", nil, testIdentities, lifetime - renewBefore + time.Hour, false},
		"a key is missing":   {"half a set is none", func(t *testing.T, dir string) { t.Helper(); remove(t, Key(dir, "manager")) }, testIdentities, 0, false},
		"the CA is missing":  {"nothing can be verified without it", func(t *testing.T, dir string) { t.Helper(); remove(t, CA(dir)) }, testIdentities, 0, false},
		"no signing key":     {"the API server does not start without", func(t *testing.T, dir string) { t.Helper(); remove(t, filepath.Join(dir, ServiceAccountKey)) }, testIdentities, 0, false},
		"another identity":   {"a newer Herald may need one more", nil, append(testIdentities[:2:2], Identity{Name: "new", CommonName: "new"}), 0, false},
		"another group":      {"rights follow the groups", nil, []Identity{testIdentities[0], {Name: "manager", CommonName: testIdentities[1].CommonName}}, 0, false},
		"groups reordered":   {"a certificate keeps them as a set", nil, []Identity{testIdentities[0], {Name: "manager", CommonName: testIdentities[1].CommonName, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:a"}}}, 0, true},
		"a killed renewal":   {"what it left must not be in the way", func(t *testing.T, dir string) { t.Helper(); mkdir(t, filepath.Join(dir+".new", "x")) }, testIdentities, 0, true},
		"killed in mid-swap": {"the old set was removed, the new one not yet in place", func(t *testing.T, dir string) { t.Helper(); rename(t, dir, dir+".new") }, testIdentities, 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pki")
			before := ensure(t, dir, testIdentities, now)
			if tc.change != nil {
				tc.change(t, dir)
			}
			after := ensure(t, dir, tc.ids, now.Add(tc.later))
			if (before == after) != tc.kept {
				t.Errorf("kept: %v, want %v: %s", before == after, tc.kept, tc.reason)
			}
			if !complete(dir, tc.ids, now.Add(tc.later)) {
				t.Errorf("the set is not complete: %s", tc.reason)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestPrivateKeysAreTheirOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	ensure(t, dir, testIdentities, time.Now())
	for _, path := range []string{Key(dir, caName), Key(dir, "manager"), filepath.Join(dir, ServiceAccountKey)} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", filepath.Base(path), info.Mode(), err)
		}
	}
}

// TestKubeconfigReachesTheServer proves that both ends accept each other, and as whom the client is known.
func TestKubeconfigReachesTheServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	ca := ensure(t, dir, testIdentities, time.Now())
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(ca))
	serving, err := tls.LoadX509KeyPair(Cert(dir, "server"), Key(dir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	var subject string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		subject = r.TLS.PeerCertificates[0].Subject.CommonName
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	defer server.Close()

	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := WriteKubeconfig(file, server.URL, dir, "manager", "herald-demo"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if subject != testIdentities[1].CommonName {
		t.Errorf("the server sees %q", subject)
	}
}
