// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package receiver sends notifications to addresses that users chose: by HTTPS to public addresses, and by email
// through the installation's mail server. A request has the limits of package fetch: it checks the address of each
// connection after resolving the name, and limits the time and the size of the response. It does not follow redirects.
package receiver

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/publicaddr"
)

const (
	// DefaultTimeout is the timeout of a request, as Standard Webhooks recommends (15 to 30 s).
	DefaultTimeout = 15 * time.Second

	dialTimeout = 5 * time.Second
	maxHeader   = 16 << 10
)

// Error is the reason a receiver did not accept a notification. Its message is stable and safe to show to the user who
// chose the address: it does not reveal Herald's network.
type Error struct {
	Message string
	// Gone is true if the receiver requests no further notifications.
	Gone bool
	// RetryAfter is the pause that the receiver requests, or zero.
	RetryAfter time.Duration

	cause error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.cause }

// Options configure a Client. Outside of tests, use the zero value.
type Options struct {
	// Timeout is the timeout of a request. It defaults to DefaultTimeout.
	Timeout time.Duration
	// Allow returns an error if an address is forbidden. It defaults to publicaddr.Check.
	Allow func(netip.Addr) error
	// Roots are the trusted certificate authorities. They default to the system roots.
	Roots *x509.CertPool
	// Clock serves to interpret Retry-After dates. It defaults to the real clock.
	Clock clock.PassiveClock
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	client  *http.Client
	timeout time.Duration
	clock   clock.PassiveClock
}

// New returns a client.
func New(o Options) *Client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Allow == nil {
		o.Allow = publicaddr.Check
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	allow := func(to netip.Addr) error {
		if err := o.Allow(to); err != nil {
			return noPublicAddress(err)
		}
		return nil
	}
	return &Client{timeout: o.Timeout, clock: o.Clock, client: &http.Client{
		// Receivers answer at their address. A redirect would send the content elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: publicaddr.NewTransport(publicaddr.TransportOptions{
			Allow: allow, Roots: o.Roots, DialTimeout: dialTimeout, MaxHeaderBytes: maxHeader,
		}),
	}}
}

// Post sends a JSON body with the given headers. A 2xx response is a success; its body is not read. The error is an
// *Error unless ctx is done.
func (c *Client) Post(ctx context.Context, address string, header map[string]string, body []byte) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return &Error{Message: "its URL must use https and must not contain a user name"}
	}
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(within, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return &Error{Message: "its URL must use https and must not contain a user name"}
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Herald")
	response, err := c.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return explain(err)
	}
	_ = response.Body.Close() // the body is not read
	return c.check(response)
}

func (c *Client) check(response *http.Response) error {
	status := response.StatusCode
	switch {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		return &Error{Message: fmt.Sprintf("it responded with a redirect (%d); enter the URL that it redirects to", status)}
	case status == http.StatusGone:
		return &Error{Message: "it reported that it no longer exists (410)", Gone: true}
	default:
		return &Error{Message: fmt.Sprintf("it responded with status %d", status), RetryAfter: c.retryAfter(response.Header.Get("Retry-After"))}
	}
}

// retryAfter returns the pause in a Retry-After header (RFC 9110, section 10.2.3), or zero.
func (c *Client) retryAfter(value string) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(c.clock.Now()), 0)
	}
	return 0
}

// noPublicAddress is the error both for a name without an address and for a name with a private one, as in package
// fetch.
func noPublicAddress(cause error) *Error {
	return &Error{Message: "its URL does not resolve to a public address", cause: cause}
}

func explain(err error) error {
	err = publicaddr.Cause(err)
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	switch publicaddr.FailureOf(err) {
	case publicaddr.NoServer:
		return noPublicAddress(err)
	case publicaddr.Untrusted:
		return &Error{Message: "its certificate is not trusted", cause: err}
	case publicaddr.TimedOut:
		return &Error{Message: "it took too long to respond", cause: err}
	case publicaddr.Disconnected:
	}
	return &Error{Message: "the connection to it failed", cause: err}
}
