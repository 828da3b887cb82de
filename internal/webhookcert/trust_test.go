// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookcert

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/herald-social/herald/test/must"
)

// pairOf returns the certificate in a Secret's data, with its key.
func pairOf(t *testing.T, data map[string][]byte) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivate])
	must.Succeed(t, err)
	return pair
}

func TestUntrusted(t *testing.T) {
	service := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "herald-webhook", Namespace: "herald-system"}}
	address := admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:9443/validate-post")}
	data := made(t, nil, []string{"herald-webhook.herald-system.svc", "127.0.0.1"}, noon)
	leaf := pairOf(t, data).Leaf
	other := made(t, nil, []string{"127.0.0.1"}, noon)[keyAuthority]
	for name, tc := range map[string]struct {
		reason string
		called admissionregistrationv1.WebhookClientConfig
		bundle []byte
		served []*x509.Certificate
		at     time.Time
		want   string
	}{
		"by its Service":    {"the certificate is as created", service, data[keyAuthority], []*x509.Certificate{leaf}, noon, ""},
		"by an address":     {"the local run uses an address", address, data[keyAuthority], []*x509.Certificate{leaf}, noon, ""},
		"ended":             {"the certificate was not renewed", service, data[keyAuthority], []*x509.Certificate{leaf}, noon.Add(2 * lifetime), "has expired or is not yet valid"},
		"another authority": {"the configuration was applied by another tool", service, other, []*x509.Certificate{leaf}, noon, "unknown authority"},
		"no bundle":         {"the system does not trust our authority", service, nil, []*x509.Certificate{leaf}, noon, "posts.social.herald.dev: x509"},
		"an invalid bundle": {"an administrator damaged the configuration", service, []byte("x"), []*x509.Certificate{leaf}, noon, "unknown authority"},
		"another Service":   {"the release was renamed", admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "other", Namespace: "x"}}, data[keyAuthority], []*x509.Certificate{leaf}, noon, "not other.x.svc"},
		"no certificate":    {"the certificate was not created yet", service, data[keyAuthority], nil, noon, "no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.called.CABundle = tc.bundle
			config := &admissionregistrationv1.ValidatingWebhookConfiguration{
				Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "posts.social.herald.dev", ClientConfig: tc.called}},
			}
			got := ""
			if err := Untrusted(config, tc.served, tc.at); err != nil {
				got = err.Error()
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestServed(t *testing.T) {
	pair := pairOf(t, made(t, nil, []string{"127.0.0.1"}, noon))
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	must.Succeed(t, err)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func(conn net.Conn) {
				_ = conn.(*tls.Conn).HandshakeContext(t.Context())
				_ = conn.Close()
			}(conn)
		}
	}()
	served, err := Served(t.Context(), listener.Addr().String())
	if err != nil || len(served) != 1 || !served[0].Equal(pair.Leaf) {
		t.Errorf("got %d certificates, %v", len(served), err)
	}
	must.Succeed(t, listener.Close())
	if _, err := Served(t.Context(), listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
}
