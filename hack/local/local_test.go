// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/herald-social/herald/hack/local/workspace"
)

func TestStateHasOneOwner(t *testing.T) {
	root := t.TempDir()
	first := &app{root: root}
	if _, err := first.acquireState(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := &app{root: root}
	if _, err := second.acquireState(t.Context()); err == nil || !strings.Contains(err.Error(), "kill "+strconv.Itoa(os.Getpid())) {
		t.Errorf("a second run returned %v, want the lock's owner and the remedy", err)
	}
	if err := first.lock.Close(); err != nil {
		t.Error(err)
	}
}

func TestStartupRemovesStaleEnv(t *testing.T) {
	a := &app{root: t.TempDir()}
	if err := workspace.WriteFile(a.state("env"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.acquireState(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(a.state("env")); !os.IsNotExist(err) {
		t.Errorf("the file still exists (%v): programs would look for the killed run", err)
	}
}

func TestResetKeepsLocks(t *testing.T) {
	a := &app{root: t.TempDir()}
	if err := workspace.WriteFile(a.state("etcd/member"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(a.state(""))
	if err != nil || len(entries) != 2 || entries[0].Name() != groupName || entries[1].Name() != lockName {
		t.Errorf("remaining: %v, %v, want only the locks, because a concurrent start uses the same files", entries, err)
	}
}

func TestSitePort(t *testing.T) {
	tests := map[string]struct {
		reason, value string
		want          int
	}{
		"unset":        {"the documented default", "", 8080},
		"set":          {"a user's value takes precedence", "18080", 18080},
		"not a number": {"a typing error does not select the default", "http", 0},
		"zero":         {"a random port would change at each restart", "0", 0},
		"too large":    {"ports end at 65535", "65536", 0},
		"with space":   {"invalid values are not corrected", " 80", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := sitePort(tc.value)
			if got != tc.want || (err == nil) != (tc.want != 0) {
				t.Errorf("%d, %v, want %d: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestCheckSitePortSuggestsARemedy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	message := checkSitePort(port)
	if message == nil {
		t.Fatal("an occupied port counts as free")
	}
	for _, want := range []string{strconv.Itoa(port), "lsof", "HERALD_PORT="} {
		if !strings.Contains(message.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, message)
		}
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := checkSitePort(port); err != nil {
		t.Errorf("a free port: %v", err)
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
