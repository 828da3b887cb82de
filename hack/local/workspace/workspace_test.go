// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "hack", "store")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(dir, text string) {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Find(deep); err == nil {
		t.Error("found a checkout where there is none")
	}
	write(root, "module github.com/herald-social/herald\n")
	write(deep, "module github.com/herald-social/herald/hack/store\n")
	found, err := Find(deep)
	if err != nil || found.Root != root {
		t.Errorf("found %q, %v, want %q: a nested module is not the checkout's root", found.Root, err, root)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "lock")
	lock, err := Acquire(path, "Herald runs")
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := Acquire(path, "a second run"); !errors.As(err, &held) {
		t.Fatalf("a second lock: %v, want a HeldError", err)
	}
	if held.Holder.PID != os.Getpid() || !strings.Contains(held.Error(), "Herald runs") {
		t.Errorf("the error is %q; it must say who holds the lock", held)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Acquire(path, "the next run")
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

func TestForgetKeepsTheLock(t *testing.T) {
	w := Workspace{Root: t.TempDir()}
	if err := w.Forget(); err != nil {
		t.Errorf("nothing to forget: %v", err)
	}
	lock, err := Acquire(w.LockPath(), "reset")
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(w.State("etcd", "member"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Forget(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(w.State())
	if err != nil || len(entries) != 1 || entries[0].Name() != lockName {
		t.Errorf("left: %v, %v, want the lock only: a run that starts now must meet the same file", entries, err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

// occupy listens on the port for the rest of the test.
func occupy(t *testing.T, port int) {
	t.Helper()
	listener, err := net.Listen("tcp", Address(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
}

func TestChoosePorts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	names := []string{"etcd", "store"}
	first, err := ChoosePorts(file, names, 0)
	if err != nil {
		t.Fatal(err)
	}
	if first["etcd"] == first["store"] {
		t.Errorf("both have port %d", first["etcd"])
	}
	for name, port := range first {
		if port < firstPort || port >= firstPort+portCount {
			t.Errorf("%s has port %d, which an outgoing connection may take while it restarts", name, port)
		}
	}
	again, err := ChoosePorts(file, append(names, "sandbox"), 0)
	if err != nil || again["etcd"] != first["etcd"] || again["store"] != first["store"] {
		t.Errorf("the second run has %v, %v, want those of the first, %v", again, err, first)
	}
	occupy(t, first["etcd"])
	third, err := ChoosePorts(file, names, 0)
	if err != nil || third["etcd"] == first["etcd"] || third["store"] != first["store"] {
		t.Errorf("with one of %v taken: %v, %v; only the taken one may change", first, third, err)
	}
	avoided, err := ChoosePorts(file, names, first["store"])
	if err != nil || avoided["store"] == first["store"] {
		t.Errorf("the store has %d, %v, which the site was given now", avoided["store"], err)
	}
}

func TestChoosePortsForgetsADamagedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ports, err := ChoosePorts(file, []string{"etcd"}, 0); err != nil || ports["etcd"] == 0 {
		t.Errorf("%v, %v", ports, err)
	}
}

func TestSitePort(t *testing.T) {
	tests := map[string]struct {
		reason, value string
		want          int
	}{
		"unset":      {"the default is documented", "", 8080},
		"set":        {"what a person says holds", "18080", 18080},
		"a word":     {"a typing error must not become the default", "http", 0},
		"zero":       {"a port that changes at each restart is of no use", "0", 0},
		"too large":  {"there is no such port", "65536", 0},
		"with space": {"no guessing", " 80", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := SitePort(tc.value)
			if got != tc.want || (err == nil) != (tc.want != 0) {
				t.Errorf("%d, %v, want %d: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestCheckSitePortTellsWhoAndWhatToDo(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := SitePort(text)
	if err != nil {
		t.Fatal(err)
	}
	message := CheckSitePort(port)
	if message == nil {
		t.Fatal("a taken port was found free")
	}
	for _, want := range []string{text, filepath.Base(os.Args[0]), "HERALD_PORT="} {
		if !strings.Contains(message.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, message)
		}
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := CheckSitePort(port); err != nil {
		t.Errorf("a free port: %v", err)
	}
}

func TestWriteEnvIsReadBackByAShell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b", "env")
	value := `it's "$HOME" \ & ` + "`id`" + ` * # %`
	if err := WriteEnv(path, []Variable{{"ONE", "1"}, {"TWO", value}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600: the file holds a key", info.Mode(), err)
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", `. "$0" && sh -c 'printf "%s|%s" "$ONE" "$TWO"'`, path).CombinedOutput()
	if err != nil || string(out) != "1|"+value {
		t.Errorf("a shell reads %q, %v, want %q", out, err, "1|"+value)
	}
}

func TestWriteFileLeavesNothingBehindWhenItFails(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(target, "by a folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(target, []byte("x"), 0o600); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
