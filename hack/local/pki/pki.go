// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes the certificates of the local control plane: one authority, the servers it vouches for, and one
// client certificate per identity, so that every process has exactly the rights that RBAC gives to its name.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// lifetime of all certificates.
	lifetime = 2 * 365 * 24 * time.Hour
	// renewBefore is how long before their end they are made anew, at the next start.
	renewBefore = 60 * 24 * time.Hour
	// backdate allows for clocks that are set back a little.
	backdate = time.Hour
)

const caName = "ca"

// ServiceAccountKey is the name of the file with the key that signs service account tokens.
const ServiceAccountKey = "service-account.key"

// Identity is a certificate to make.
type Identity struct {
	// Name of the two files, NAME.crt and NAME.key.
	Name string
	// CommonName is the user name that Kubernetes reads.
	CommonName string
	// Groups are the groups that Kubernetes reads.
	Groups []string
	// Server certificates are valid for the loopback address.
	Server bool
}

// Cert is the path of a certificate in dir.
func Cert(dir, name string) string { return filepath.Join(dir, name+".crt") }

// Key is the path of a private key in dir.
func Key(dir, name string) string { return filepath.Join(dir, name+".key") }

// CA is the path of the authority's certificate in dir.
func CA(dir string) string { return Cert(dir, caName) }

// Ensure makes dir hold valid certificates for all identities. What is there and will stay valid is kept; otherwise all
// of it is made anew and put in place as a whole.
func Ensure(dir string, identities []Identity, now time.Time) error {
	if complete(dir, identities, now) {
		return nil
	}
	fresh := dir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return err
	}
	if err := generate(fresh, identities, now); err != nil {
		return fmt.Errorf("make the certificates of the local control plane: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// complete reports whether every file is there and every certificate is vouched for by the authority for long enough.
func complete(dir string, identities []Identity, now time.Time) bool {
	authority, err := readCert(CA(dir))
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	if _, err := os.Stat(filepath.Join(dir, ServiceAccountKey)); err != nil {
		return false
	}
	for _, id := range identities {
		cert, err := readCert(Cert(dir, id.Name))
		if err != nil || cert.Subject.CommonName != id.CommonName || !sameGroups(cert.Subject.Organization, id.Groups) {
			return false
		}
		options := x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(renewBefore), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
		if _, err := cert.Verify(options); err != nil {
			return false
		}
		if _, err := os.Stat(Key(dir, id.Name)); err != nil {
			return false
		}
	}
	return true
}

// sameGroups compares without order: a certificate keeps its groups as a set.
func sameGroups(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func readCert(path string) (*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s holds no certificate", path)
	}
	return x509.ParseCertificate(block.Bytes)
}

func generate(dir string, identities []Identity, now time.Time) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	authority := template(caName, nil, now)
	authority.Subject.CommonName = "herald-local"
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	if err := issue(dir, caName, authority, authority, key, key); err != nil {
		return err
	}
	for _, id := range identities {
		own, err := newKey()
		if err != nil {
			return err
		}
		cert := template(id.CommonName, id.Groups, now)
		cert.KeyUsage = x509.KeyUsageDigitalSignature
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		if id.Server {
			cert.ExtKeyUsage = append(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
			cert.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
			cert.DNSNames = []string{"localhost"}
		}
		if err := issue(dir, id.Name, cert, authority, own, key); err != nil {
			return err
		}
	}
	signing, err := newKey()
	if err != nil {
		return err
	}
	return writeKey(filepath.Join(dir, ServiceAccountKey), signing)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func template(commonName string, groups []string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: commonName, Organization: groups},
		NotBefore: now.Add(-backdate),
		NotAfter:  now.Add(lifetime),
	}
}

// issue signs cert for own by the parent and writes both files.
func issue(dir, name string, cert, parent *x509.Certificate, own, parentKey *ecdsa.PrivateKey) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	cert.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &own.PublicKey, parentKey)
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(Cert(dir, name), "CERTIFICATE", der, 0o644),
		writeKey(Key(dir, name), own),
	)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der, 0o600)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}
