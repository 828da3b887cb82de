// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"crypto/tls"
	"encoding/csv"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/hack/local/supervisor"
)

// prepared returns a setup whose files have been written.
func prepared(t *testing.T) *Setup {
	t.Helper()
	dir := t.TempDir()
	for _, program := range []string{Etcd, KubeAPIServer, KubeControllerManager} {
		if err := os.WriteFile(filepath.Join(dir, program), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := &Setup{
		Assets: dir, Bin: dir, Dir: filepath.Join(dir, ".local"), SitePort: 8080,
		Platforms: []v1alpha1.Platform{v1alpha1.PlatformX}, Namespace: "herald-demo",
	}
	if err := s.Prepare(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPrepareReportsMissingProgram(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	put(Etcd, 0o755)
	s := &Setup{Assets: dir, Dir: filepath.Join(dir, ".local")}
	if err := s.Prepare(); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, KubeAPIServer)) {
		t.Errorf("got %v, want an error with the program's path", err)
	}
	put(KubeAPIServer, 0o644)
	if err := s.Prepare(); err == nil || !strings.Contains(err.Error(), "not a program") {
		t.Errorf("a file that is not executable was accepted: %v", err)
	}
}

// TestControllerManagerPath covers the fallback to Bin: setup-envtest's archives lack the program.
func TestControllerManagerPath(t *testing.T) {
	s := prepared(t)
	s.Bin = t.TempDir()
	if got := s.KubeControllerManager().Path; got != filepath.Join(s.Assets, KubeControllerManager) {
		t.Errorf("with a program in the assets, the path is %s", got)
	}
	if err := os.Remove(filepath.Join(s.Assets, KubeControllerManager)); err != nil {
		t.Fatal(err)
	}
	if err := s.Prepare(); err == nil || !strings.Contains(err.Error(), "make controlplane") {
		t.Errorf("without a program, got %v, want the remedy", err)
	}
	own := filepath.Join(s.Bin, KubeControllerManager)
	if err := os.WriteFile(own, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Prepare(); err != nil || s.KubeControllerManager().Path != own {
		t.Errorf("%v; got the path %s, want the built program %s", err, s.KubeControllerManager().Path, own)
	}
}

func TestAllAddressesAreLoopback(t *testing.T) {
	s := prepared(t)
	for _, spec := range []supervisor.Spec{s.Etcd(), s.KubeAPIServer(), s.KubeControllerManager(), s.Store(), s.Sandbox(), s.Manager(), s.APIServer()} {
		addresses := 0
		// Herald's own processes read their addresses from a configuration file.
		arguments := spec.Args
		if i := slices.Index(arguments, "--config"); i >= 0 {
			arguments = slices.Concat(arguments, strings.Split(read(t, arguments[i+1]), "\n"))
		}
		for _, argument := range arguments {
			if argument == "--bind-address=127.0.0.1" {
				addresses++
			}
			if strings.Contains(argument, ":2") || strings.Contains(argument, ":8080") {
				addresses++
				if !strings.Contains(argument, "127.0.0.1:") {
					t.Errorf("%s: %s", spec.Name, argument)
				}
			}
			if strings.Contains(argument, "0.0.0.0") || strings.Contains(argument, "localhost") {
				t.Errorf("%s: %s", spec.Name, argument)
			}
		}
		if addresses == 0 {
			t.Errorf("%s has no address: %q", spec.Name, arguments)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestCredentialsAreReused(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*Setup) error
		kept   bool
	}{
		"the next start":   {"a copied kubeconfig remains valid", func(*Setup) error { return nil }, true},
		"a killed start":   {"a key without its certificate is replaced", func(s *Setup) error { return os.Remove(s.certificateFile()) }, false},
		"tokens are gone":  {"tokens are derived from the key", func(s *Setup) error { return os.Remove(s.tokenFile()) }, true},
		"a changed config": {"manual changes are overwritten", func(s *Setup) error { return os.WriteFile(s.Kubeconfig(Admin), nil, 0o600) }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := prepared(t)
			before := read(t, s.Kubeconfig(Admin))
			if err := tc.change(s); err != nil {
				t.Fatal(err)
			}
			if err := s.Prepare(); err != nil {
				t.Fatal(err)
			}
			if after := read(t, s.Kubeconfig(Admin)); (after == before) != tc.kept {
				t.Errorf("reused: %v, want %v: %s", after == before, tc.kept, tc.reason)
			}
			if _, err := tls.LoadX509KeyPair(s.certificateFile(), s.keyFile()); err != nil {
				t.Errorf("%v: %s", err, tc.reason)
			}
		})
	}
}

func TestStoreKeyIsStable(t *testing.T) {
	s := prepared(t)
	first, err := s.StoreKey()
	if err != nil || first.AccessKey == "" || first.SecretKey == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := s.StoreKey(); err != nil || again != first {
		t.Errorf("got %+v, %v, want %+v: the bucket belongs to the key", again, err, first)
	}
}

func TestSecretFilesArePrivate(t *testing.T) {
	s := prepared(t)
	for _, path := range []string{s.keyFile(), s.tokenFile(), s.Kubeconfig(Admin), s.Kubeconfig(Manager), s.storeKeyFile()} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", filepath.Base(path), info, err)
		}
	}
}

// TestKubeconfigReachesTheServer checks that a client accepts the certificate, and that each identity's token is in the
// API server's token file.
func TestKubeconfigReachesTheServer(t *testing.T) {
	s := prepared(t)
	records, err := csv.NewReader(strings.NewReader(read(t, s.tokenFile()))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, record := range records {
		known["Bearer "+record[0]] = record[1] + " " + record[3]
	}
	serving, err := tls.LoadX509KeyPair(s.certificateFile(), s.keyFile())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", s.Address(KubeAPIServer))
	if err != nil {
		t.Fatal(err)
	}
	var user string
	server := &httptest.Server{
		Listener: listener,
		Config:   &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { user = known[r.Header.Get("Authorization")] })},
		TLS:      &tls.Config{Certificates: []tls.Certificate{serving}},
	}
	server.StartTLS()
	defer server.Close()
	for identity, want := range map[string]string{
		Admin:     "herald-local-admin system:masters",
		Manager:   "system:serviceaccount:herald-system:herald-manager system:serviceaccounts,system:serviceaccounts:herald-system",
		APIServer: "system:serviceaccount:herald-system:herald-apiserver system:serviceaccounts,system:serviceaccounts:herald-system",
	} {
		config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig(identity))
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := get(t.Context(), client, config.Host); err != nil {
			t.Fatal(err)
		}
		if user != want {
			t.Errorf("the server identifies %s as %q, want %q", identity, user, want)
		}
	}
}

// occupy listens on the port until the test is over.
func occupy(t *testing.T, port int) {
	t.Helper()
	listener, err := net.Listen("tcp", ports.Address(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
}

func TestChoosePorts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	names := []string{"etcd", "store"}
	first, err := choosePorts(file, names, 0)
	if err != nil {
		t.Fatal(err)
	}
	if first["etcd"] == first["store"] {
		t.Errorf("both have port %d", first["etcd"])
	}
	for name, port := range first {
		if port >= 32768 { // Linux's ephemeral range
			t.Errorf("%s has port %d, which an outgoing connection may use during its restart", name, port)
		}
	}
	again, err := choosePorts(file, append(names, "sandbox"), 0)
	if err != nil || again["etcd"] != first["etcd"] || again["store"] != first["store"] {
		t.Errorf("the second run has %v, %v, want the first run's %v", again, err, first)
	}
	occupy(t, first["etcd"])
	third, err := choosePorts(file, names, 0)
	if err != nil || third["etcd"] == first["etcd"] || third["store"] != first["store"] {
		t.Errorf("with one of %v occupied: %v, %v; only the occupied one may change", first, third, err)
	}
	avoided, err := choosePorts(file, names, first["store"])
	if err != nil || avoided["store"] == first["store"] {
		t.Errorf("the store has port %d, %v, which belongs to the site", avoided["store"], err)
	}
}

func TestChoosePortsReplacesADamagedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ports, err := choosePorts(file, []string{"etcd"}, 0); err != nil || ports["etcd"] == 0 {
		t.Errorf("%v, %v", ports, err)
	}
}
