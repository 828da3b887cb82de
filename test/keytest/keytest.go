// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keytest creates keys for tests.
package keytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/herald-social/herald/test/must"
)

// P256 returns a new private key as `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` writes it.
func P256(tb testing.TB) string {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(tb, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must.Succeed(tb, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
