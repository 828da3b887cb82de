// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/suite"
)

// authority is a CA that issues certificates, as cert-manager does.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() *authority {
	GinkgoHelper()
	key := suite.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der := suite.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	certificate := suite.Must(x509.ParseCertificate(der))
	return &authority{certificate, key}
}

// bundle returns the authority's PEM certificate, the caBundle of a webhook configuration.
func (a *authority) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// issue writes a certificate for 127.0.0.1 and its key into a directory. The certificate expires at until.
func (a *authority) issue(folder string, until time.Time) {
	GinkgoHelper()
	key := suite.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(until.UnixNano()), Subject: pkix.Name{CommonName: "webhook"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der := suite.Must(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))
	private := suite.Must(x509.MarshalPKCS8PrivateKey(key))
	for file, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: private}} {
		Expect(os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600)).To(Succeed())
	}
}
