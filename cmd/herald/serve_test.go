// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/hack/local/ports"
)

// statusOf returns the status of a GET, or 0 if there was no response.
func statusOf(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

func TestProbesWhileWaiting(t *testing.T) {
	address := ports.ForTest(t)
	stop, err := serveWaiting(t.Context(), configv1alpha1.Endpoint{BindAddress: address}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := statusOf(t, "http://"+address+"/livez"); got != http.StatusOK {
		t.Errorf("a process that waits is alive: %d", got)
	}
	if got := statusOf(t, "http://"+address+"/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("a process that waits is not ready: %d", got)
	}
	if _, err := serveWaiting(t.Context(), configv1alpha1.Endpoint{BindAddress: address}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an address that is taken is told")
	}
	stop()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the process itself listens there next: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	for _, nowhere := range []string{"", "0"} {
		stop, err := serveWaiting(t.Context(), configv1alpha1.Endpoint{BindAddress: nowhere}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		stop()
	}
}

func TestProfiles(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	address := ports.ForTest(t)
	if err := servePprof(ctx, configv1alpha1.Endpoint{BindAddress: address}, log); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "heap", "goroutine", "profile?seconds=1", "trace?seconds=1"} {
		if got := statusOf(t, "http://"+address+"/debug/pprof/"+path); got != http.StatusOK {
			t.Errorf("%s: %d", path, got)
		}
	}
	if got := statusOf(t, "http://"+address+"/livez"); got != http.StatusNotFound {
		t.Errorf("nothing else is served there: %d", got)
	}
	if err := servePprof(ctx, configv1alpha1.Endpoint{BindAddress: address}, log); err == nil {
		t.Error("an address that is taken is told")
	}
	if err := servePprof(ctx, configv1alpha1.Endpoint{}, log); err != nil {
		t.Errorf("by default there is none: %v", err)
	}
}

// TestCertificateIsReadAgain replaces the files of a served certificate.
func TestCertificateIsReadAgain(t *testing.T) {
	folder := t.TempDir()
	c := &configv1alpha1.TLS{CertFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key")}
	write := func(host string) {
		t.Helper()
		certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for file, data := range map[string][]byte{c.CertFile: certificate, c.KeyFile: key} {
			if err := os.WriteFile(file+".new", data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}
	}
	log := slog.New(slog.DiscardHandler)
	if _, err := serveTLS(t.Context(), c, log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("files that are missing are told: %v", err)
	}
	if config, err := serveTLS(t.Context(), nil, log); config != nil || err != nil {
		t.Errorf("without a certificate HTTP is spoken: %v, %v", config, err)
	}
	write("old.example.com")
	config, err := serveTLS(t.Context(), c, log)
	if err != nil {
		t.Fatal(err)
	}
	if config.MinVersion < tls.VersionTLS12 {
		t.Error("TLS 1.1 is spoken")
	}
	served := func(host string) bool {
		pair, err := config.GetCertificate(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.VerifyHostname(host) == nil
	}
	if !served("old.example.com") {
		t.Error("another certificate is served")
	}
	write("new.example.com")
	// The folder is watched, and also polled every 10 s.
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return served("new.example.com"), nil
	})
	if err != nil {
		t.Error("the new certificate is not served")
	}
}
