// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
)

// Secret reads a file that contains one secret; setting identifies the file in errors.
func Secret(setting, file string) (string, error) {
	data, err := os.ReadFile(file) //nolint:gosec // the path is the operator's own configuration
	if err != nil {
		return "", fmt.Errorf("%s: %w", setting, err)
	}
	if secret := strings.TrimSpace(string(data)); secret != "" {
		return secret, nil
	}
	return "", errors.New(setting + ": " + file + " is empty")
}

// SecretReader returns a function that reads the secret in a file on every call; setting identifies the file in errors.
// While the file cannot be read, for example while it is being replaced, the function returns the last secret, which is
// "" at first. SecretReader itself returns the error of the first read.
func SecretReader(setting, file string, log *slog.Logger) (func() string, error) {
	var last atomic.Pointer[string]
	last.Store(new(string))
	read := func() error {
		secret, err := Secret(setting, file)
		if err == nil {
			last.Store(&secret)
		}
		return err
	}
	err := read()
	return func() string {
		if err := read(); err != nil {
			log.Warn("A secret cannot be read; the last one is used", "error", err)
		}
		return *last.Load()
	}, err
}

// RootCAs returns a pool with the system's CAs and the CAs in a PEM file; setting identifies the file in errors.
// Without a file it returns nil, which means the system's CAs.
func RootCAs(setting, file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // crypto/tls takes nil for the system's authorities
	}
	pem, err := os.ReadFile(file) //nolint:gosec // the path is the operator's own configuration
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("cannot read the system's authorities: %w", err)
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s contains no PEM certificate", setting, file)
	}
	return roots, nil
}
