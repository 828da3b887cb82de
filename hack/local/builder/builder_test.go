// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/hack/local/process"
	"github.com/herald-social/herald/hack/local/workspace"
)

// fakeGo stands in for the go command: its settings come from a file, and a build writes one word to the output, or
// does what the file "misbehave" says.
const fakeGo = `#!/bin/sh
here=$(dirname "$0")
if [ "$1" = env ]; then cat "$here/settings"; exit; fi
while [ "$1" != -o ]; do shift; done
echo half >"$2"
echo build >>"$here/builds"
if [ -f "$here/misbehave" ]; then . "$here/misbehave"; fi
echo whole >"$2"
`

// bench is a folder with a fake go and a module.
type bench struct {
	t       *testing.T
	dir     string
	builder *Builder
	program Program
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{t: t, dir: dir, program: Program{Name: "etcd", Dir: filepath.Join(dir, "module"), Package: ".", Inputs: []string{"main.go"}}}
	b.builder = New(filepath.Join(dir, "bin"), process.NewSpawner(), func(string, ...any) {})
	for name, text := range map[string]string{
		"tools/go": fakeGo, "tools/settings": "go1.26\n", "module/go.mod": "m", "module/go.sum": "s", "module/main.go": "package main",
	} {
		b.write(name, text)
	}
	t.Setenv("PATH", filepath.Join(dir, "tools")+":"+os.Getenv("PATH"))
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := workspace.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

func (b *bench) current() bool {
	b.t.Helper()
	current, err := b.builder.Current(b.t.Context(), b.program)
	if err != nil {
		b.t.Fatal(err)
	}
	return current
}

func (b *bench) build() {
	b.t.Helper()
	if err := b.builder.Build(b.t.Context(), b.program); err != nil {
		b.t.Fatal(err)
	}
}

func TestStamp(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*bench)
		want   bool
	}{
		"nothing changed":  {"a build of five minutes is not repeated without need", func(*bench) {}, true},
		"another version":  {"go.mod pins what is built", func(b *bench) { b.write("module/go.mod", "m2") }, false},
		"another checksum": {"go.sum pins what is built, too", func(b *bench) { b.write("module/go.sum", "s2") }, false},
		"another source":   {"the program's own files count", func(b *bench) { b.write("module/main.go", "package main // 2") }, false},
		"another Go":       {"a new toolchain builds anew", func(b *bench) { b.write("tools/settings", "go1.27\n") }, false},
		"other flags":      {"the version in the program is one", func(b *bench) { b.program.LDFlags = "-X v=2" }, false},
		"program removed":  {"a stamp alone is no program", func(b *bench) { b.remove("bin/etcd") }, false},
		"stamp removed":    {"a program alone may be any", func(b *bench) { b.remove("bin/.stamps/etcd") }, false},
		"stamp cut off":    {"half a stamp is none", func(b *bench) { b.write("bin/.stamps/etcd", b.read("bin/.stamps/etcd")[:10]) }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if b.current() {
				t.Fatal("current before it was built")
			}
			b.build()
			if got := b.read("bin/etcd"); got != "whole\n" {
				t.Fatalf("built %q", got)
			}
			tc.change(b)
			if got := b.current(); got != tc.want {
				t.Errorf("current: %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func (b *bench) remove(name string) {
	b.t.Helper()
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

func TestFailedBuildKeepsWhatWasThere(t *testing.T) {
	b := newBench(t)
	b.build()
	b.write("module/go.mod", "m2")
	b.write("tools/misbehave", "echo 'go: downloading x'; echo 'x.go:1: wrong'; exit 1")
	err := b.builder.Build(t.Context(), b.program)
	if err == nil || !strings.Contains(err.Error(), "x.go:1: wrong") || strings.Contains(err.Error(), "downloading") {
		t.Errorf("the error is %v; it must show what the compiler said and no more", err)
	}
	if got := b.read("bin/etcd"); got != "whole\n" {
		t.Errorf("the program is now %q", got)
	}
	if b.current() {
		t.Error("the old program passes for the new one")
	}
}

func TestKilledBuildIsNotTakenForWhole(t *testing.T) {
	b := newBench(t)
	b.write("bin/.etcd"+halfBuilt, "half")
	lock, err := b.builder.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release() //nolint:errcheck // the test ends
	if b.read("bin/.etcd"+halfBuilt) != "" {
		t.Error("what a killed build left was kept; it may be a hundred megabytes")
	}
	if b.current() {
		t.Error("a half-built program passes for a whole one")
	}
}

func TestInterruptedBuild(t *testing.T) {
	tests := map[string]struct{ reason, script string }{
		"a polite compiler": {"an interrupt ends go build", "touch $here/begun; exec sleep 1000"},
		"its children too":  {"the compilers are children of go build", "touch $here/begun; sleep 1000"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("tools/misbehave", tc.script)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- b.builder.Build(ctx, b.program) }()
			waitForFile(t, filepath.Join(b.dir, "tools", "begun"))
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the build ended with %v (%s)", err, tc.reason)
			}
			if b.read("bin/etcd") != "" || b.read("bin/.etcd"+halfBuilt) != "" || b.current() {
				t.Errorf("an interrupted build left something (%s)", tc.reason)
			}
		})
	}
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", path)
		case <-tick.C:
		}
	}
}

func TestLockWaitsForTheOtherBuild(t *testing.T) {
	b := newBench(t)
	said := make(chan string, 10)
	b.builder.say = func(format string, args ...any) { said <- fmt.Sprintf(format, args...) }
	first, err := b.builder.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		lock *workspace.Lock
		err  error
	}
	second := make(chan result, 1)
	go func() {
		lock, err := b.builder.Lock(t.Context())
		second <- result{lock, err}
	}()
	if text := <-said; !strings.Contains(text, "under way") {
		t.Errorf("whoever waits is told %q", text)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	got := <-second
	if got.err != nil {
		t.Fatal(got.err)
	}
	if err := got.lock.Release(); err != nil {
		t.Error(err)
	}
}

func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Missing("go", "to build Herald", "https://go.dev/dl/")
	if err == nil || !strings.Contains(err.Error(), "go is not installed") || !strings.Contains(err.Error(), "https://go.dev/dl/") {
		t.Errorf("the message is %v", err)
	}
}

func TestExplain(t *testing.T) {
	tests := map[string]struct{ reason, printed, want string }{
		"no network": {"on a fresh machine this is the likeliest trouble", "go: x: dial tcp: lookup proxy: no such host\n", "GOPROXY"},
		"disk full":  {"the caches need some gigabytes", "write /tmp/x: no space left on device\n", "go clean"},
		"memory":     {"kube-apiserver is large", "compile: signal: killed\n", "GOFLAGS=-p=1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := explain(tc.printed); !strings.Contains(got, tc.want) || !strings.Contains(got, strings.TrimSpace(tc.printed)) {
				t.Errorf("%q lacks %q (%s)", got, tc.want, tc.reason)
			}
		})
	}
}
