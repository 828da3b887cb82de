// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publicaddr

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// TransportOptions configure a transport to URLs that users chose. All fields except Roots are required.
type TransportOptions struct {
	// Allow returns an error if an address is forbidden.
	Allow func(netip.Addr) error
	// Roots are the trusted certificate authorities. They default to the system roots.
	Roots *x509.CertPool
	// DialTimeout is the timeout of a connection, and of its TLS handshake.
	DialTimeout time.Duration
	// MaxHeaderBytes limits a response's headers.
	MaxHeaderBytes int64
}

// NewTransport returns a transport that checks the address of each connection. It keeps no idle connections: they would
// take memory, and bypass the check of the next request. It requests no compression, so that the declared length is
// the length of the body, and a few bytes cannot expand to many.
func NewTransport(o TransportOptions) *http.Transport {
	dialer := &net.Dialer{Timeout: o.DialTimeout, Control: Control(o.Allow)}
	return &http.Transport{
		// A proxy would connect on our behalf, without the check.
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    o.DialTimeout,
		MaxResponseHeaderBytes: o.MaxHeaderBytes,
		DisableKeepAlives:      true,
		DisableCompression:     true,
	}
}

// Failure is the kind of a request's failure.
type Failure int

// The kinds of failures.
const (
	// Disconnected is any other failure of a connection.
	Disconnected Failure = iota
	// NoServer: the name has no address.
	NoServer
	// Untrusted: the server's certificate is not trusted.
	Untrusted
	// TimedOut: the server did not respond in time.
	TimedOut
)

// Cause returns the error of a failed request without its URL, which may contain a secret.
func Cause(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

// FailureOf returns the kind of a request's failure.
func FailureOf(err error) Failure {
	var (
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		timeout net.Error
	)
	switch {
	case errors.As(err, &dns):
		return NoServer
	case errors.As(err, &cert):
		return Untrusted
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut
	default:
		return Disconnected
	}
}
