// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	apiserverPath = "release/v1.37.1/bin/linux/amd64/kube-apiserver"
	kubectlPath   = "release/v1.37.1/bin/linux/amd64/kubectl"
	etcdPath      = "etcd-io/etcd/releases/download/v3.7.0/etcd-v3.7.0-linux-amd64.tar.gz"
	etcdMember    = "etcd-v3.7.0-linux-amd64/etcd"
	content       = "a program"
)

var versions = map[string]string{kubernetesModule: "v1.37.1", etcdModule: "v3.7.0"}

func sum(body string) string {
	raw := sha256.Sum256([]byte(body))
	return hex.EncodeToString(raw[:])
}

func pack(t *testing.T, member, body string) string {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for _, file := range []struct{ name, body string }{{"README.md", "read me"}, {member, body}} {
		if err := archive.WriteHeader(&tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.body))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, file.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

// mirror serves files by path and counts the requests for each.
type mirror struct {
	*httptest.Server
	mu       sync.Mutex
	requests map[string]int
}

func serve(t *testing.T, files map[string]http.HandlerFunc) *mirror {
	t.Helper()
	m := &mirror{requests: map[string]int{}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := strings.TrimPrefix(r.URL.Path, "/")
		m.mu.Lock()
		m.requests[at]++
		m.mu.Unlock()
		if files[at] == nil {
			http.NotFound(w, r)
			return
		}
		files[at](w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

func sends(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// breaksOff announces more bytes than it sends, then closes the connection.
func breaksOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000000")
	_, _ = io.WriteString(w, content)
}

// silent accepts a request and never responds.
func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// stalls sends part of the body, then nothing.
func stalls(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "1000000")
	_, _ = io.WriteString(w, content)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

var (
	// patient has timeouts that even a loaded machine does not reach. The others each have one that is reached.
	patient   = timeouts{connect: time.Minute, header: time.Minute, stall: time.Minute}
	noAnswer  = timeouts{connect: time.Minute, header: 250 * time.Millisecond, stall: time.Minute}
	noContent = timeouts{connect: time.Minute, header: time.Minute, stall: 50 * time.Millisecond}
)

func TestFetchAll(t *testing.T) {
	etcd := pack(t, etcdMember, content)
	noMember := pack(t, "etcd", content)
	kube := map[string]string{apiserverPath: sum(content), kubectlPath: sum(content)}
	for name, test := range map[string]struct {
		files     map[string]http.HandlerFunc
		pinned    map[string]string
		limits    timeouts
		names     []string
		installed []string
		build     []string
		requests  map[string]int
		logged    string
		fails     []string
	}{
		"programs and archives are installed": {
			files:     map[string]http.HandlerFunc{apiserverPath: sends(content), etcdPath: sends(etcd)},
			pinned:    map[string]string{apiserverPath: sum(content), etcdPath: sum(etcd)},
			names:     []string{"etcd", "kube-apiserver"},
			installed: []string{"etcd", "kube-apiserver"},
			requests:  map[string]int{apiserverPath: 1, etcdPath: 1},
		},
		"a program without a pin is built, without a request": {
			files: map[string]http.HandlerFunc{apiserverPath: sends(content)}, pinned: map[string]string{},
			names: []string{"kube-apiserver"}, build: []string{"kube-apiserver"}, logged: "pins no kube-apiserver for linux/amd64",
		},
		"damaged bytes fail: the program is neither installed nor built": {
			files: map[string]http.HandlerFunc{apiserverPath: sends("b program")}, pinned: kube, names: []string{"kube-apiserver", "kubectl"},
			requests: map[string]int{apiserverPath: 1},
			fails:    []string{"/" + apiserverPath, sum("b program"), sum(content), "checksums.txt", "DOWNLOADS=off", "make controlplane-checksums"},
		},
		"a truncated file of a plausible length fails": {
			files: map[string]http.HandlerFunc{etcdPath: sends(etcd[:len(etcd)/2])}, pinned: map[string]string{etcdPath: sum(etcd)}, names: []string{"etcd"},
			requests: map[string]int{etcdPath: 1}, fails: []string{sum(etcd[:len(etcd)/2]), sum(etcd)},
		},
		"an archive without the program fails": {
			files: map[string]http.HandlerFunc{etcdPath: sends(noMember)}, pinned: map[string]string{etcdPath: sum(noMember)}, names: []string{"etcd"},
			requests: map[string]int{etcdPath: 1}, fails: []string{"it has no " + etcdMember},
		},
		"after a broken connection the programs are built, without a second attempt": {
			files: map[string]http.HandlerFunc{apiserverPath: breaksOff, kubectlPath: sends(content)}, pinned: kube, names: []string{"kube-apiserver", "kubectl"},
			build: []string{"kube-apiserver", "kubectl"}, requests: map[string]int{apiserverPath: 1}, logged: "broke off",
		},
		"a missing file is built, and the others are downloaded": {
			files: map[string]http.HandlerFunc{kubectlPath: sends(content)}, pinned: kube, names: []string{"kube-apiserver", "kubectl"},
			build: []string{"kube-apiserver"}, installed: []string{"kubectl"}, requests: map[string]int{apiserverPath: 1, kubectlPath: 1}, logged: "404",
		},
		"a server without a response costs one timeout": {
			files: map[string]http.HandlerFunc{apiserverPath: silent, kubectlPath: sends(content)}, pinned: kube, limits: noAnswer, names: []string{"kube-apiserver", "kubectl"},
			build: []string{"kube-apiserver", "kubectl"}, requests: map[string]int{apiserverPath: 1}, logged: "timeout",
		},
		"a server that stops sending costs one timeout": {
			files: map[string]http.HandlerFunc{apiserverPath: stalls, kubectlPath: sends(content)}, pinned: kube, limits: noContent, names: []string{"kube-apiserver", "kubectl"},
			build: []string{"kube-apiserver", "kubectl"}, requests: map[string]int{apiserverPath: 1}, logged: errStalled.Error(),
		},
		"an unknown program fails": {names: []string{"kubelet"}, fails: []string{"kubelet"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := serve(t, test.files)
			if test.limits == (timeouts{}) {
				test.limits = patient
			}
			var log bytes.Buffer
			d := &downloader{client: newClient(test.limits), timeouts: test.limits, mirror: m.URL, platform: "linux/amd64", log: &log}
			into := filepath.Join(t.TempDir(), "bin")
			build, err := d.fetchAll(t.Context(), pins{versions, test.pinned}, into, test.names)
			checkError(t, err, test.fails)
			if diff := cmp.Diff(test.build, build); diff != "" {
				t.Errorf("programs to build, want -, got +:\n%s", diff)
			}
			checkInstalled(t, into, test.installed)
			m.Close() // waits for its handlers
			if diff := cmp.Diff(test.requests, m.requests); len(test.requests)+len(m.requests) > 0 && diff != "" {
				t.Errorf("requests, want -, got +:\n%s", diff)
			}
			if !strings.Contains(log.String(), test.logged) {
				t.Errorf("the log %q lacks %q", log.String(), test.logged)
			}
		})
	}
}

// checkError checks that an error contains all words or, if there are none, that there is no error.
func checkError(t *testing.T, err error, words []string) {
	t.Helper()
	if (err != nil) != (len(words) > 0) {
		t.Fatalf("error %v, want one with %q", err, words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error lacks %q:\n%v", word, err)
		}
	}
}

// checkInstalled checks that a folder contains exactly these programs and no partial ones.
func checkInstalled(t *testing.T, into string, names []string) {
	t.Helper()
	entries, err := os.ReadDir(into)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(filepath.Join(into, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if string(body) != content || info.Mode() != 0o755 {
			t.Errorf("%s has the mode %o and the content %q", entry.Name(), info.Mode(), body)
		}
	}
	if diff := cmp.Diff(names, found); diff != "" {
		t.Errorf("files, want -, got +:\n%s", diff)
	}
}

func TestUnreachableServer(t *testing.T) {
	m := serve(t, nil)
	m.Close()
	d := &downloader{client: newClient(patient), timeouts: patient, mirror: m.URL, platform: "linux/amd64", log: io.Discard}
	into := t.TempDir()
	build, err := d.fetchAll(t.Context(), pins{versions, map[string]string{kubectlPath: sum(content)}}, into, []string{"kubectl"})
	checkError(t, err, nil)
	if diff := cmp.Diff([]string{"kubectl"}, build); diff != "" {
		t.Errorf("programs to build, want -, got +:\n%s", diff)
	}
	checkInstalled(t, into, nil)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := serve(t, map[string]http.HandlerFunc{kubectlPath: func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}})
	d := &downloader{client: newClient(patient), timeouts: patient, mirror: m.URL, platform: "linux/amd64", log: io.Discard}
	into := t.TempDir()
	build, err := d.fetchAll(ctx, pins{versions, map[string]string{kubectlPath: sum(content)}}, into, []string{"kubectl"})
	checkError(t, err, []string{"interrupted"})
	if len(build) > 0 {
		t.Errorf("%q would be built after an interrupt", build)
	}
	checkInstalled(t, into, nil)
}

func TestParseMirror(t *testing.T) {
	for from, want := range map[string]string{
		"": "", "https://mirror.example/k8s/": "https://mirror.example/k8s", "http://127.0.0.1:8080": "http://127.0.0.1:8080",
	} {
		if got, err := parseMirror(from); err != nil || got != want {
			t.Errorf("parseMirror(%q) = %q, %v; want %q", from, got, err, want)
		}
	}
	for _, from := range []string{"no", "mirror.example", "ftp://mirror.example", "https://"} {
		if got, err := parseMirror(from); err == nil {
			t.Errorf("parseMirror(%q) = %q, want an error", from, got)
		}
	}
}
