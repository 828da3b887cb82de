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
	"fmt"
	"net"
	"slices"
	"time"
)

const (
	// lifetime is how long a certificate and its authority, which are issued together, are valid.
	lifetime = 365 * 24 * time.Hour
	// renewAhead is how long before it expires a certificate is renewed.
	renewAhead = lifetime / 3
	// backdate allows for clocks that are slow.
	backdate = time.Hour
	// maxHosts limits a certificate's additional hosts: the names of other replicas during a rollout or two.
	maxHosts = 16
	// maxTrusted limits the previous authorities that remain trusted. A replica serves with the newest certificate
	// within checkEvery, so one would do; the others are for replicas that disagree about their hosts.
	maxTrusted = 4
)

const blockCertificate = "CERTIFICATE"

// coversHosts reports whether a Secret's data contains a valid certificate for all hosts, signed by its authority.
func coversHosts(data map[string][]byte, hosts []string, now time.Time) bool {
	leaf := valid(data, now)
	return leaf != nil && !slices.ContainsFunc(hosts, func(host string) bool { return leaf.VerifyHostname(host) != nil })
}

// valid is like coversHosts, for any hosts. It returns the certificate, or nil.
func valid(data map[string][]byte, now time.Time) *x509.Certificate {
	pair, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	if err != nil {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data[keyAuthority])
	for _, at := range []time.Time{now, now.Add(renewAhead)} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at}); err != nil {
			return nil
		}
	}
	return pair.Leaf
}

// hostsFor returns the hosts for a new certificate: the needed ones, plus the hosts of the previous certificate if that
// is still valid. Other replicas may need these, and would otherwise take turns issuing new certificates. When a
// certificate is renewed because of its age, unneeded names are dropped.
func hostsFor(data map[string][]byte, needed []string, now time.Time) []string {
	leaf := valid(data, now)
	if leaf == nil {
		return needed
	}
	hosts := slices.Clone(needed)
	others := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		others = append(others, ip.String())
	}
	for _, host := range others {
		if len(hosts) < len(needed)+maxHosts && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// issue creates an authority and a certificate. The newest maxTrusted of the trusted authorities remain trusted until
// they expire: another replica may still serve with a certificate from one of them.
func issue(trusted []byte, hosts []string, now time.Time) (map[string][]byte, error) {
	authority := template("herald-webhook-ca", now)
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	authorityDER, authorityKey, err := sign(authority, authority, nil)
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
	leafDER, key, err := sign(leaf, authority, authorityKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: authorityDER})
	return map[string][]byte{
		keyAuthority:   append(bundle, unexpired(trusted, now)...),
		keyCertificate: pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: leafDER}),
		keyPrivate:     pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// unexpired returns the first maxTrusted unexpired authorities in a bundle. The newest come first.
func unexpired(bundle []byte, now time.Time) []byte {
	var kept bytes.Buffer
	for n := 0; n < maxTrusted; {
		var block *pem.Block
		block, bundle = pem.Decode(bundle)
		if block == nil {
			break
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err == nil && now.Before(authority.NotAfter) {
			kept.Write(pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: block.Bytes}))
			n++
		}
	}
	return kept.Bytes()
}

func template(name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-backdate),
		NotAfter:  now.Add(lifetime),
	}
}

// sign makes a key for a certificate, and signs the certificate with its parent's key, or with its own if that is nil.
func sign(cert, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("create a key: %w", err)
	}
	if parentKey == nil {
		parentKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return der, key, nil
}
