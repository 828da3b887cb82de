// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// TestCertificateIsReloaded replaces the files of a served certificate.
func TestCertificateIsReloaded(t *testing.T) {
	folder := t.TempDir()
	c := &configv1alpha1.TLS{CertFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key")}
	write := func(host string) {
		t.Helper()
		certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
		must.Succeed(t, err)
		for file, data := range map[string][]byte{c.CertFile: certificate, c.KeyFile: key} {
			must.Succeed(t, os.WriteFile(file+".new", data, 0o600))
			must.Succeed(t, os.Rename(file+".new", file))
		}
	}
	log := slog.New(slog.DiscardHandler)
	if _, err := serveTLS(t.Context(), c, log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing files returned %v", err)
	}
	if config, err := serveTLS(t.Context(), nil, log); config != nil || err != nil {
		t.Errorf("without a certificate HTTP is spoken: %v, %v", config, err)
	}
	write("old.example.com")
	config, err := serveTLS(t.Context(), c, log)
	must.Succeed(t, err)
	if config.MinVersion < tls.VersionTLS12 {
		t.Error("TLS 1.1 is spoken")
	}
	served := func(host string) bool {
		pair, err := config.GetCertificate(&tls.ClientHelloInfo{})
		must.Succeed(t, err)
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		must.Succeed(t, err)
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
