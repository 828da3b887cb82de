// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// lifetime of a certificate and of its authority, which are made together.
	lifetime = 365 * 24 * time.Hour
	// renewAhead is how long before its end a certificate is made anew.
	renewAhead = lifetime / 3
	// backdate allows for clocks that are set back a little.
	backdate = time.Hour
	// serialBits is how long serial numbers are (RFC 5280 allows 160).
	serialBits = 120
)

const blockCertificate = "CERTIFICATE"

// good tells whether the data of a Secret hold a certificate for all hosts that
// its authority vouches for, and will for long enough.
func good(data map[string][]byte, hosts []string, now time.Time) bool {
	pair, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	if err != nil {
		return false
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data[keyAuthority])
	for _, host := range hosts {
		for _, at := range []time.Time{now, now.Add(renewAhead)} {
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: at}); err != nil {
				return false
			}
		}
	}
	return true
}

// issue makes an authority and a certificate. The authorities that were trusted
// before stay so until their end: another replica may still serve with a
// certificate of theirs.
func issue(trusted []byte, hosts []string, now time.Time) (map[string][]byte, error) {
	authority := template("herald-webhook-ca", now)
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	authorityDER, err := sign(authority, authority, authorityKey, authorityKey)
	if err != nil {
		return nil, err
	}
	leaf := template(hosts[0], now)
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	leafDER, err := sign(leaf, authority, key, authorityKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: authorityDER})
	return map[string][]byte{
		keyAuthority:   append(bundle, stillTrusted(trusted, now)...),
		keyCertificate: pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: leafDER}),
		keyPrivate:     pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// stillTrusted keeps of a bundle what has not ended.
func stillTrusted(bundle []byte, now time.Time) []byte {
	var kept bytes.Buffer
	for {
		var block *pem.Block
		block, bundle = pem.Decode(bundle)
		if block == nil {
			return kept.Bytes()
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err == nil && now.Before(authority.NotAfter) {
			kept.Write(pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: block.Bytes}))
		}
	}
}

func template(name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-backdate),
		NotAfter:  now.Add(lifetime),
	}
}

func sign(cert, parent *x509.Certificate, own, parentKey *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	cert.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, own.Public(), parentKey)
	if err != nil {
		return nil, errors.Join(errors.New("sign a certificate"), err)
	}
	return der, nil
}
