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

func TestOneRunAtATime(t *testing.T) {
	root := t.TempDir()
	first := &app{root: root}
	if _, err := first.acquireState(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := &app{root: root}
	if _, err := second.acquireState(t.Context()); err == nil || !strings.Contains(err.Error(), "kill "+strconv.Itoa(os.Getpid())) {
		t.Errorf("a second run: %v; it must say who holds the lock and what to do", err)
	}
	if err := first.lock.Close(); err != nil {
		t.Error(err)
	}
}

func TestTakeOverRemovesTheEnvOfAKilledRun(t *testing.T) {
	a := &app{root: t.TempDir()}
	if err := workspace.WriteFile(a.state("env"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.acquireState(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(a.state("env")); !os.IsNotExist(err) {
		t.Errorf("the file is left (%v): programs would look for a run that is gone", err)
	}
}

func TestResetKeepsTheLocks(t *testing.T) {
	a := &app{root: t.TempDir()}
	if err := workspace.WriteFile(a.state("etcd/member"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(a.state(""))
	if err != nil || len(entries) != 2 || entries[0].Name() != groupName || entries[1].Name() != lockName {
		t.Errorf("left: %v, %v, want the locks only: a run that starts now must meet the same files", entries, err)
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
		t.Fatal("a taken port was found free")
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
