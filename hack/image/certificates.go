// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"runtime/debug"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificatesPath is where Go looks first for the authorities that a system trusts.
const certificatesPath = "/etc/ssl/certs/ca-certificates.crt"

// certificatesModule is where the authorities come from: Mozilla's list as the Go project keeps it. Unlike a package of a
// distribution, one version of a module can be had for as long as there are Go modules, and go.sum knows it.
const certificatesModule = "golang.org/x/crypto/x509roots/fallback"

// certificates returns the authorities in PEM. Those that Mozilla trusts for older certificates only are left out: a file of
// certificates cannot say so.
func certificates() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// certificatesVersion returns the module with its version.
func certificatesVersion() (debug.Module, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return debug.Module{}, errors.New("this program does not know its modules; build it with Go modules")
	}
	for _, dependency := range info.Deps {
		if dependency.Path == certificatesModule {
			return *dependency, nil
		}
	}
	return debug.Module{}, errors.New("this program is built without " + certificatesModule)
}
