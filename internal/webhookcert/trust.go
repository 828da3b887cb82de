// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookcert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Served returns the certificate that is served at address, with its chain.
func Served(ctx context.Context, address string) ([]*x509.Certificate, error) {
	// Untrusted verifies the served certificate, with the authorities that the API server trusts.
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // nothing is sent
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the webhook does not answer at %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }() // the certificates are already read
	secured, ok := conn.(*tls.Conn)
	if !ok || len(secured.ConnectionState().PeerCertificates) == 0 {
		return nil, fmt.Errorf("the webhook at %s serves no certificate", address)
	}
	return secured.ConnectionState().PeerCertificates, nil
}

// Untrusted returns the reason the API server refuses to call webhooks that serve this certificate, or nil if it calls
// them. The certificate is the first in served, followed by its chain.
func Untrusted(config *admissionregistrationv1.ValidatingWebhookConfiguration, served []*x509.Certificate, now time.Time) error {
	if len(served) == 0 {
		return errors.New("no certificate is served")
	}
	between := x509.NewCertPool()
	for _, certificate := range served[1:] {
		between.AddCert(certificate)
	}
	for i := range config.Webhooks {
		webhook := &config.Webhooks[i]
		options := x509.VerifyOptions{DNSName: serverName(&webhook.ClientConfig), Intermediates: between, CurrentTime: now}
		// Without a bundle, the API server uses its system's root CAs. The roots of this system stand in for them.
		if bundle := webhook.ClientConfig.CABundle; len(bundle) > 0 {
			options.Roots = x509.NewCertPool()
			options.Roots.AppendCertsFromPEM(bundle)
		}
		if _, err := served[0].Verify(options); err != nil {
			return fmt.Errorf("the Kubernetes API does not accept the certificate of webhook %s: %w", webhook.Name, err)
		}
	}
	return nil
}

// serverName returns the name that the API server verifies in a webhook's certificate.
func serverName(c *admissionregistrationv1.WebhookClientConfig) string {
	if c.Service != nil {
		return c.Service.Name + "." + c.Service.Namespace + ".svc"
	}
	if c.URL == nil {
		return ""
	}
	address, err := url.Parse(*c.URL)
	if err != nil {
		return ""
	}
	return address.Hostname()
}
