// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/herald-social/herald/hack/local/supervisor"
	"github.com/herald-social/herald/hack/local/workspace"
)

func testSettings() settings {
	s := settings{
		programs:  programs{etcd: "/a b/bin/etcd", kubeAPIServer: "/assets/kube-apiserver", store: "/a b/bin/herald-store", sandbox: "/a b/bin/herald-sandbox", herald: "/a b/bin/herald"},
		workspace: workspace.Workspace{Root: "/a b"},
		site:      8080,
		ports:     map[string]int{},
	}
	for i, name := range portNames {
		s.ports[name] = 20000 + i
	}
	return s
}

func allSpecs(s settings) []supervisor.Spec {
	return []supervisor.Spec{s.etcdSpec(), s.kubeAPIServerSpec(), s.storeSpec(), s.sandboxSpec(), s.managerSpec(), s.apiserverSpec()}
}

func TestEveryProcessIsRecognisedAfterAKill(t *testing.T) {
	s := testSettings()
	for _, spec := range allSpecs(s) {
		line := append([]string{spec.Path}, spec.Args...)
		if !isOurs(s.workspace)(line) {
			t.Errorf("%s would be left running: %q", spec.Name, line)
		}
		if !isOurs(s.workspace)(strings.Fields(strings.Join(line, " "))) {
			t.Errorf("%s would be left running where arguments are not told apart", spec.Name)
		}
		if isOurs(workspace.Workspace{Root: "/another"})(line) {
			t.Errorf("the %s of another checkout would be killed", spec.Name)
		}
	}
	for _, stranger := range [][]string{
		{"/usr/bin/etcd", "--data-dir=/var/lib/etcd"},
		{"/usr/bin/less", "/a b/.local/log/etcd.log"},
		{"/a b/bin/herald", "version"},
		nil,
	} {
		if isOurs(s.workspace)(stranger) {
			t.Errorf("a stranger would be killed: %q", stranger)
		}
	}
}

func TestEverythingListensOnLoopback(t *testing.T) {
	for _, spec := range allSpecs(testSettings()) {
		for _, argument := range spec.Args {
			if strings.Contains(argument, ":20") && !strings.Contains(argument, "127.0.0.1:") {
				t.Errorf("%s: %s", spec.Name, argument)
			}
			if strings.Contains(argument, "0.0.0.0") || strings.Contains(argument, "localhost") {
				t.Errorf("%s: %s", spec.Name, argument)
			}
		}
	}
}

func TestFromAssets(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	put("etcd", 0o755)
	if _, _, err := fromAssets(dir); err == nil || !strings.Contains(err.Error(), "kube-apiserver") {
		t.Errorf("the error is %v; it must say what is missing", err)
	}
	put("kube-apiserver", 0o644)
	if _, _, err := fromAssets(dir); err == nil || !strings.Contains(err.Error(), "not a program") {
		t.Errorf("a file that cannot be run was taken: %v", err)
	}
	if err := os.Chmod(filepath.Join(dir, "kube-apiserver"), 0o755); err != nil {
		t.Fatal(err)
	}
	etcd, kube, err := fromAssets(dir)
	if err != nil || etcd != filepath.Join(dir, "etcd") || kube != filepath.Join(dir, "kube-apiserver") {
		t.Errorf("%s, %s, %v", etcd, kube, err)
	}
}

func TestPinnedVersion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go.mod")
	text := "module m\n\ntool k8s.io/kubernetes/cmd/kube-apiserver\n\nrequire (\n\tk8s.io/kubernetes v1.37.1\n\tk8s.io/kubernetes/x v9.9.9 // indirect\n)\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := pinnedVersion(file, "k8s.io/kubernetes"); err != nil || got != "v1.37.1" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := pinnedVersion(file, "k8s.io/none"); err == nil {
		t.Errorf("found %q of a module that is not required", got)
	}
}

// TestTheControlPlaneIsPinned reads the real file: without a version in it, kubectl refuses the server.
func TestTheControlPlaneIsPinned(t *testing.T) {
	w, err := workspace.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := (&app{workspace: w}).controlPlane()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"version.gitVersion=v1.", "version.gitMajor=1", "version.gitMinor="} {
		if !strings.Contains(programs[1].LDFlags, want) {
			t.Errorf("%q lacks %q", programs[1].LDFlags, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	tests := map[string]string{
		"/home/me/herald/.local/kubeconfig": "/home/me/herald/.local/kubeconfig",
		"/home/me/my herald":                "'/home/me/my herald'",
		"it's":                              `'it'\''s'`,
	}
	for text, want := range tests {
		if got := shellWord(text); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
	}
}
