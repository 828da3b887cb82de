// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build crashpoints

package process

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"

	"github.com/herald-social/herald/internal/publicaddr"
	"github.com/herald-social/herald/internal/receiver"
)

// testReceiver is the address of a test's receivers. All other non-public addresses remain forbidden.
var testReceiver = netip.MustParseAddr("127.0.0.1")

// Receivers returns the options for requests to notification receivers. The file named by HERALD_CRASH_RECEIVERS
// contains the certificates of the test's receivers at testReceiver. This version exists only in the build for the
// crash matrix and the receiver benchmark. It panics if the file cannot be read, because the test would otherwise prove
// nothing.
func Receivers() receiver.Options {
	file := os.Getenv("HERALD_CRASH_RECEIVERS")
	if file == "" {
		return receiver.Options{}
	}
	roots := x509.NewCertPool()
	if certificates, err := os.ReadFile(file); err != nil || !roots.AppendCertsFromPEM(certificates) { //nolint:gosec // the test names the file
		panic(fmt.Sprintf("HERALD_CRASH_RECEIVERS: %s has no certificates: %v", file, err))
	}
	return receiver.Options{Roots: roots, Allow: func(to netip.Addr) error {
		if to.Unmap() == testReceiver {
			return nil
		}
		return publicaddr.Check(to)
	}}
}
