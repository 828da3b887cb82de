// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fetch downloads a file from a URL that a user chose. It uses only HTTPS, and limits redirects, size and time.
// It connects only to public addresses: it checks the address of each connection after resolving the name, so that
// neither a redirect nor a name that resolves differently the next time leads to an internal server. The file is
// streamed, not held in memory.
package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/publicaddr"
)

const (
	// DefaultTimeout is the timeout for a download as a whole: 1 GB takes 15 minutes at 10 Mbit/s.
	DefaultTimeout = 15 * time.Minute

	// maxRedirects limits redirects. Real servers use one or two: to another host, then to a signed URL.
	maxRedirects = 5

	dialTimeout   = 10 * time.Second
	headerTimeout = 30 * time.Second
	maxHeader     = 64 << 10
)

// Options configure a Client. Outside of tests, use the zero value.
type Options struct {
	// Timeout is the timeout for a whole download. It defaults to DefaultTimeout.
	Timeout time.Duration
	// StallTimeout is how long a server may send fewer than MinSpeed bytes per second. It defaults to DefaultStallTimeout.
	StallTimeout time.Duration
	// Allow returns an error if an address is forbidden. It defaults to publicaddr.Check.
	Allow func(netip.Addr) error
	// Roots are the trusted certificate authorities. They default to the system roots.
	Roots *x509.CertPool
}

// Client fetches files. It is safe for concurrent use.
type Client struct {
	client                *http.Client
	timeout, stallTimeout time.Duration
}

// New returns a client.
func New(o Options) *Client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.StallTimeout <= 0 {
		o.StallTimeout = DefaultStallTimeout
	}
	if o.Allow == nil {
		o.Allow = publicaddr.Check
	}
	transport := publicaddr.NewTransport(publicaddr.TransportOptions{
		Allow: allow(o.Allow), Roots: o.Roots, DialTimeout: dialTimeout, MaxHeaderBytes: maxHeader,
	})
	transport.ResponseHeaderTimeout = headerTimeout
	return &Client{timeout: o.Timeout, stallTimeout: o.StallTimeout, client: &http.Client{CheckRedirect: checkRedirect, Transport: transport}}
}

func allow(check func(netip.Addr) error) func(netip.Addr) error {
	return func(to netip.Addr) error {
		if err := check(to); err != nil {
			return noPublicAddress(err)
		}
		return nil
	}
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return permanent("it redirects more than %d times", maxRedirects)
	}
	if err := check(req.URL); err != nil {
		return err
	}
	// The next server must not see the previous address.
	req.Header.Del("Referer")
	return nil
}

func check(u *url.URL) error {
	switch {
	case u.Scheme != "https":
		return permanent("it is not an https URL")
	case u.Hostname() == "":
		return permanent("it names no server")
	case u.User != nil:
		return permanent("it contains a user name or password")
	default:
		return nil
	}
}

// Expected describes the expected file.
type Expected struct {
	// MIMEType is the type to request. The response's type is ignored: many servers get it wrong.
	MIMEType string
	// Size is the exact size in bytes. Zero accepts any size that the server announces.
	Size int64
	// MaxSize is the largest accepted size, in bytes.
	MaxSize int64
}

// Get downloads a file and passes it to take, with its exact size in bytes. Reading the body fails as soon as it is
// longer or shorter. A *DownloadError is the fault of the file or its server; any other error comes from take.
func (c *Client) Get(ctx context.Context, address string, want Expected, take func(ctx context.Context, size int64, body io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	response, err := c.open(ctx, address, want.MIMEType)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // Close errors do not affect the data read.
	size, err := sizeOf(response, want)
	if err != nil {
		return err
	}
	body := &exactly{from: &paced{from: response.Body, clock: clock.RealClock{}, full: c.stallTimeout, left: c.stallTimeout, end: end}, left: size}
	err = take(ctx, size, body)
	switch {
	case body.problem != nil:
		return body.problem
	case err != nil:
		return err
	default:
		return body.checkEOF()
	}
}

// open requests a file of the given type, as for the Accept header. The caller closes the response's body.
func (c *Client) open(ctx context.Context, address, accept string) (*http.Response, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, permanent("it is not a URL")
	}
	if err := check(u); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, permanent("it is not a URL")
	}
	req.Header.Set("User-Agent", "Herald")
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "identity")
	response, err := c.client.Do(req)
	if err != nil {
		return nil, explain(err)
	}
	return response, nil
}

// Page is a small file, such as a web page.
type Page struct {
	// URL is where it was found, after redirects.
	URL *url.URL
	// Type is the media type that the server sends, without parameters.
	Type string
	// Body is the file, or its beginning.
	Body []byte
	// Whole reports whether the body is the whole file.
	Whole bool
}

// Page downloads at most limit bytes of a file of unknown size, within the client's timeout. Errors are
// *DownloadError.
func (c *Client) Page(ctx context.Context, address, accept string, limit int64) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	response, err := c.open(ctx, address, accept)
	if err != nil {
		return Page{}, err
	}
	defer func() { _ = response.Body.Close() }() // Close errors do not affect the data read.
	if err := checkStatus(response.StatusCode); err != nil {
		return Page{}, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return Page{}, explain(err)
	}
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	whole := int64(len(body)) <= limit
	if !whole {
		body = body[:limit]
	}
	return Page{URL: response.Request.URL, Type: mediaType, Body: body, Whole: whole}, nil
}

func sizeOf(response *http.Response, want Expected) (int64, error) {
	if err := checkStatus(response.StatusCode); err != nil {
		return 0, err
	}
	if coding := response.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return 0, permanent("the server sends the file encoded, although it was asked not to")
	}
	size := response.ContentLength
	if size < 0 {
		size = want.Size
	}
	switch {
	case size <= 0 && response.ContentLength < 0:
		return 0, permanent("the server does not send the size of the file; set it in spec.sizeBytes")
	case size == 0:
		return 0, permanent("the file is empty")
	case want.Size > 0 && size != want.Size:
		return 0, permanent("the file is %d bytes long, but spec.sizeBytes says %d", size, want.Size)
	case size > want.MaxSize:
		return 0, permanent("the file is %d bytes long, but at most %d are allowed", size, want.MaxSize)
	default:
		return size, nil
	}
}

// checkStatus returns the error for an HTTP status. It is transient if a retry may succeed, for example because the
// file is published a little later than its Media.
func checkStatus(status int) error {
	switch {
	case status == http.StatusOK:
		return nil
	case status >= http.StatusInternalServerError,
		status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusRequestTimeout, status == http.StatusConflict,
		status == http.StatusLocked, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return transient(nil, "the server returned status %d", status)
	default:
		return permanent("the server returned status %d", status)
	}
}

type exactly struct {
	from    io.Reader
	left    int64
	problem error
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.problem != nil {
		return 0, e.problem
	}
	if e.left == 0 {
		if err := e.checkEOF(); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.from.Read(p)
	e.left -= int64(n)
	switch {
	case err == nil || (errors.Is(err, io.EOF) && e.left == 0):
		return n, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.problem = transient(err, "the file is shorter than its declared size")
	default:
		e.problem = explain(err)
	}
	return n, e.problem
}

func (e *exactly) checkEOF() error {
	if e.left > 0 {
		return nil // The consumer did not read to the end.
	}
	var more [1]byte
	if n, _ := io.ReadFull(e.from, more[:]); n > 0 {
		e.problem = permanent("the file is longer than spec.sizeBytes says")
	}
	return e.problem
}

// DownloadError is the reason a file cannot be downloaded. Its message is stable and safe to show to the user who chose
// the URL: it reveals nothing about Herald's network.
type DownloadError struct {
	// Message completes a sentence about the source.
	Message string
	// Final is true if a retry would not help.
	Final bool

	cause error
}

func (p *DownloadError) Error() string { return p.Message }
func (p *DownloadError) Unwrap() error { return p.cause }

func permanent(format string, args ...any) *DownloadError {
	return &DownloadError{Message: fmt.Sprintf(format, args...), Final: true}
}

func transient(cause error, format string, args ...any) *DownloadError {
	return &DownloadError{Message: fmt.Sprintf(format, args...), cause: cause}
}

// noPublicAddress is the error both for a name without an address and for a name with a private one. Two errors would
// show the user who chose the URL which names exist in the cluster. It is not final: a name may be created later.
func noPublicAddress(cause error) *DownloadError {
	return transient(cause, "it does not resolve to a public address")
}

func explain(err error) error {
	err = publicaddr.Cause(err)
	if problem, ok := errors.AsType[*DownloadError](err); ok {
		return problem
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	switch publicaddr.FailureOf(err) {
	case publicaddr.NoServer:
		return noPublicAddress(err)
	case publicaddr.Untrusted:
		return transient(err, "the certificate of the server is not trusted")
	case publicaddr.TimedOut:
		return transient(err, "the server took too long")
	case publicaddr.Disconnected:
	}
	return transient(err, "the connection to the server failed")
}
