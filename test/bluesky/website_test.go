// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/herald-social/herald/test/must"
)

// siteHost is the host of Herald's site, which the server finds on this machine. The server does not read documents
// from hosts that are reserved for tests and examples.
const siteHost = "herald.internal"

// website is Herald's site as the server and browsers see it: with HTTPS, in front of the apiserver.
type website struct {
	URL string
	// certificate is the path of the site's certificate; pool contains it.
	certificate string
	pool        *x509.CertPool
	handler     atomic.Pointer[http.Handler]
}

func startWebsite(t *testing.T) *website {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{siteHost}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must.Succeed(t, err)
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	s := &website{certificate: filepath.Join(t.TempDir(), "site.pem"), pool: x509.NewCertPool()}
	must.Succeed(t, os.WriteFile(s.certificate, encoded, 0o600))
	s.pool.AppendCertsFromPEM(encoded)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	must.Succeed(t, err)
	s.URL = "https://" + net.JoinHostPort(siteHost, port)
	return s
}

// serve makes the handler serve the site.
func (s *website) serve(handler http.Handler) { s.handler.Store(&handler) }

// forward forwards the site's requests to another server.
func (s *website) forward(t *testing.T, to string) {
	t.Helper()
	target, err := url.Parse(to)
	must.Succeed(t, err)
	s.serve(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
}

// transport returns a transport that sends requests for the site to this machine.
func (s *website) transport() http.RoundTripper {
	return &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.pool, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, strings.Replace(address, siteHost, "127.0.0.1", 1))
		},
	}
}
