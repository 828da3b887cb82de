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

// certificatesPath is the first path where Go looks for the system's certificate authorities.
const certificatesPath = "/etc/ssl/certs/ca-certificates.crt"

// certificatesModule is the source of the authorities: Mozilla's list, maintained by the Go project. Unlike a
// distribution's package, a version of a Go module remains available, and go.sum verifies it.
const certificatesModule = "golang.org/x/crypto/x509roots/fallback"

// certificates returns the authorities in PEM. It leaves out those that Mozilla trusts only for older certificates,
// because a PEM file cannot express that.
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
