// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transport sends all requests to the platforms. It sends each request only once, limits its time and the
// length of its response, and counts it.
//
// It never repeats a call that may change something, and does not follow redirects or store cookies, because each of
// these could make a call that publishes arrive twice. For the same reason it rejects requests with an Idempotency-Key
// header, which net/http takes as permission to send a POST again when a reused connection closes without a response,
// as it does with a GET. A call to a platform that honors such a key names it in Call.IdempotencyKey.
//
// It uses only HTTP/1.1. With HTTP/2, all calls to a platform would share one connection, and losing it would leave all
// of their outcomes unknown.
package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/publicaddr"
	"github.com/herald-social/herald/internal/tracing"
)

const (
	// DefaultMaxBody is the default size limit of a response: 1 MiB. A page of a hundred posts is far smaller.
	DefaultMaxBody = 1 << 20

	// DefaultTimeout is the default timeout for one call, from obtaining a connection to the last byte of the response.
	DefaultTimeout = 20 * time.Second

	// maxIdlePerHost is the number of idle connections kept per host, which is the number of concurrent calls to a
	// platform when many posts are due at the same time.
	maxIdlePerHost = 512

	userAgent = "herald"

	// idleTimeout closes an idle connection. It is shorter than what servers commonly allow (60 s and more): if a server
	// closes a connection just as a call is written to it, the call's outcome is unknown.
	idleTimeout = 30 * time.Second

	dialTimeout = 5 * time.Second
	tlsTimeout  = 5 * time.Second
	keepAlive   = 15 * time.Second

	// maxHeader is the maximum size of a response header, in bytes.
	maxHeader = 128 << 10
)

// ErrBodyTooLarge is the cause of an error when a response is longer than its call allows.
var ErrBodyTooLarge = errors.New("the answer is larger than allowed")

// ErrReplayable is the cause of an error when net/http could resend a request with an idempotency key on its own.
var ErrReplayable = errors.New("a request with this idempotency key would be sent again after a lost connection")

// Options configures a Client.
type Options struct {
	// Registerer registers the metrics. Nil disables them.
	Registerer prometheus.Registerer
	// Clock measures how long calls take. It defaults to the real clock.
	Clock clock.PassiveClock
	// Proxy returns the proxy for a request, as http.ProxyFromEnvironment does. Nil means no proxy.
	Proxy func(*http.Request) (*url.URL, error)
	// RootCAs are the trusted authorities. Nil means the system roots.
	RootCAs *x509.CertPool
	// Allow returns an error for an address that a call with Named must not connect to. It defaults to publicaddr.Check.
	Allow func(netip.Addr) error
}

// Client makes calls. It is safe for concurrent use.
type Client struct {
	http *http.Client
	// public connects only to public addresses. It has its own connections, since the other client's are not checked.
	public  *http.Client
	proxy   func(*http.Request) (*url.URL, error)
	clock   clock.PassiveClock
	metrics metrics
}

// New returns a Client. It panics if the metrics are already registered.
func New(o Options) *Client {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Allow == nil {
		o.Allow = publicaddr.Check
	}
	if o.Proxy == nil {
		o.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // what net/http takes for no proxy
	}
	anywhere := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	public := anywhere
	public.Control = publicaddr.Control(o.Allow)
	return &Client{
		http: newHTTP(&o, &anywhere, o.Proxy), public: newHTTP(&o, &public, nil), proxy: o.Proxy,
		clock:   o.Clock,
		metrics: newMetrics(o.Registerer),
	}
}

func newHTTP(o *Options, dialer *net.Dialer, proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  proxy,
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    tlsTimeout,
			MaxIdleConnsPerHost:    maxIdlePerHost,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeader,
			// An empty map disables HTTP/2.
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Call describes a request, for its limits and its metrics.
type Call struct {
	// Platform and Action label the metrics. Action is the purpose of the call ("publish"), never a URL.
	Platform string
	Action   string
	// MaxBody is the size of the longest acceptable response in bytes. It defaults to DefaultMaxBody.
	MaxBody int64
	// Timeout limits the whole call. It defaults to DefaultTimeout.
	Timeout time.Duration
	// IdempotencyKey is sent in the header of that name; empty for no header. The request needs a body.
	IdempotencyKey string
	// Named means that the URL does not come from the configuration: only connections to public addresses are allowed,
	// unless a proxy makes the connection.
	Named bool
}

// Response is a response that was read completely.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Error explains why there is no usable response. Its text contains neither the URL nor anything from the request.
type Error struct {
	// Sent is false only if no connection was obtained, so no part of the request can have reached the platform.
	Sent bool
	// Status is the HTTP status of a response whose body could not be read, or zero if not even its header arrived.
	Status int
	// Err is the cause.
	Err error
}

// Error returns how far the call got, and the cause.
func (e *Error) Error() string {
	switch {
	case !e.Sent:
		return "the request was not sent: " + e.Err.Error()
	case e.Status != 0:
		return fmt.Sprintf("the answer with status %d could not be read: %v", e.Status, e.Err)
	default:
		return "the request was sent, but no answer came: " + e.Err.Error()
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Do sends the request, within the call's limits, and reads the response. A POST is sent only once, as is every request
// with a method that may change something. Every HTTP status is a response, redirects included. Errors are *Error.
func (c *Client) Do(ctx context.Context, call Call, req *http.Request) (*Response, error) {
	for _, key := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if _, there := req.Header[key]; there {
			return nil, &Error{Err: ErrReplayable}
		}
	}
	if call.IdempotencyKey != "" && (req.Body == nil || req.Body == http.NoBody) {
		return nil, &Error{Err: ErrReplayable}
	}
	if call.Timeout <= 0 {
		call.Timeout = DefaultTimeout
	}
	if call.MaxBody <= 0 {
		call.MaxBody = DefaultMaxBody
	}
	started := c.clock.Now()
	// The span is only Herald's: the request to the platform carries no trace.
	ctx, span := tracing.Call(ctx, "call platform")
	resp, err := c.send(ctx, call, req)
	c.metrics.observe(call, codeOf(resp, err), c.clock.Since(started))
	trace(span, call, resp, err)
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// trace ends a call's span, which has the purpose and result, but neither the URL nor any content.
func trace(span tracing.Span, call Call, resp *Response, err *Error) {
	defer span.End()
	span.Text(tracing.Platform, call.Platform)
	span.Text(tracing.Action, call.Action)
	switch {
	case err != nil && err.Status != 0:
		span.Number(tracing.Status, err.Status)
		span.Fail(codeLost)
	case err != nil:
		span.Fail(codeOf(nil, err))
	default:
		span.Number(tracing.Status, resp.Status)
		if resp.Status >= http.StatusBadRequest {
			span.Fail(strconv.Itoa(resp.Status))
		}
	}
}

func (c *Client) send(ctx context.Context, call Call, req *http.Request) (*Response, *Error) {
	ctx, cancel := context.WithTimeout(ctx, call.Timeout)
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req = req.Clone(ctx)
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", userAgent)
	}
	if call.IdempotencyKey != "" {
		// net/http repeats a request with this header only if it can obtain the body again (documentation of
		// http.Transport).
		req.Header.Set("Idempotency-Key", call.IdempotencyKey)
		req.GetBody = nil
	}
	way, err := c.clientFor(call, req)
	if err != nil {
		return nil, &Error{Err: err}
	}
	answer, err := way.Do(req)
	if err != nil {
		return nil, &Error{Sent: connected.Load(), Err: cause(ctx, err, call.Timeout)}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, call.MaxBody+1))
	if err != nil {
		return nil, &Error{Sent: true, Status: answer.StatusCode, Err: cause(ctx, err, call.Timeout)}
	}
	if int64(len(body)) > call.MaxBody {
		return nil, &Error{
			Sent: true, Status: answer.StatusCode,
			Err: fmt.Errorf("%w: more than %d bytes", ErrBodyTooLarge, call.MaxBody),
		}
	}
	return &Response{Status: answer.StatusCode, Header: answer.Header, Body: body}, nil
}

// clientFor returns the HTTP client for a call.
func (c *Client) clientFor(call Call, req *http.Request) (*http.Client, error) {
	if !call.Named {
		return c.http, nil
	}
	proxy, err := c.proxy(req)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot determine the proxy: %w", err)
	case proxy != nil:
		return c.http, nil
	default:
		return c.public, nil
	}
}

// cause removes the URL from a net/http error, since a query string may contain secrets, and states the exceeded limit.
func cause(ctx context.Context, err error, timeout time.Duration) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no complete answer within %s: %w", timeout, context.DeadlineExceeded)
	}
	return err
}
