// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/herald-social/herald/internal/publicaddr"
	"github.com/herald-social/herald/test/must"
)

func TestDoSpeaksHTTP1(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		offers bool
	}{
		"the server offers HTTP/2":      {"an HTTP/2 connection carries many calls, and its loss affects all of them", true},
		"the server knows nothing else": {"every server supports HTTP/1.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			spoken := make(chan string, 1)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { spoken <- r.Proto }))
			server.EnableHTTP2 = tt.offers
			server.StartTLS()
			defer server.Close()
			roots := x509.NewCertPool()
			roots.AddCert(server.Certificate())
			client := New(Options{RootCAs: roots})
			if _, err := client.Do(t.Context(), Call{}, newRequest(t, http.MethodPost, server.URL, "text")); err != nil {
				t.Fatal(err)
			}
			if got := <-spoken; got != "HTTP/1.1" {
				t.Errorf("the call used %s: %s", got, tt.reason)
			}
		})
	}
}

func transportOf(t *testing.T, client *Client) *http.Transport {
	t.Helper()
	transport, ok := client.http.Transport.(*http.Transport)
	if !ok {
		t.Fatalf("calls go through %T", client.http.Transport)
	}
	return transport
}

func TestDoNamesItself(t *testing.T) {
	named := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { named <- r.UserAgent() }))
	defer server.Close()
	for name, tt := range map[string]struct{ reason, own, wants string }{
		"no user agent": {"platforms expect a user agent", "", "herald"},
		"the request's": {"the request's own user agent takes precedence", "other", "other"},
	} {
		t.Run(name, func(t *testing.T) {
			request := newRequest(t, http.MethodGet, server.URL, "")
			if tt.own != "" {
				request.Header.Set("User-Agent", tt.own)
			}
			if _, err := New(Options{}).Do(t.Context(), Call{}, request); err != nil {
				t.Fatal(err)
			}
			if got := <-named; got != tt.wants {
				t.Errorf("the user agent is %q, want %q: %s", got, tt.wants, tt.reason)
			}
		})
	}
}

func TestIdleConnections(t *testing.T) {
	if kept := transportOf(t, New(Options{})).MaxIdleConnsPerHost; kept != 512 {
		t.Errorf("%d idle connections to a host are kept; 512 calls to one platform may be in flight", kept)
	}
}

func TestErrorReportsProgress(t *testing.T) {
	for _, tt := range []struct {
		reason string
		err    Error
		wants  string
	}{
		{"the call had no effect", Error{Err: io.EOF}, "the request was not sent: EOF"},
		{"the platform responded with a status", Error{Sent: true, Status: 201, Err: io.EOF}, "the answer with status 201 could not be read: EOF"},
		{"the outcome is unknown", Error{Sent: true, Err: io.EOF}, "the request was sent, but no answer came: EOF"},
	} {
		if got := tt.err.Error(); got != tt.wants {
			t.Errorf("got %q, want %q: %s", got, tt.wants, tt.reason)
		}
	}
}

func TestCauseNamesTheExceededLimit(t *testing.T) {
	passed, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, tt := range []struct {
		reason string
		ctx    context.Context
		err    error
		named  bool
	}{
		{"the call exceeded its timeout", passed, context.DeadlineExceeded, true},
		{"another bound was passed, that of the dialer for one", t.Context(), context.DeadlineExceeded, false},
		{"the call failed for another reason while its time ran out", passed, io.EOF, false},
	} {
		err := cause(tt.ctx, tt.err, 3*time.Second)
		if !errors.Is(err, tt.err) || strings.Contains(err.Error(), "within 3s") != tt.named {
			t.Errorf("%s: got %q", tt.reason, err)
		}
	}
}

// TestDribble calls a server that sends its response one byte at a time, forever. A call's timeout covers the whole
// call.
func TestDribble(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, first string
		status        int
	}{
		"nothing":  {"the server does not respond", "", 0},
		"a header": {"a header that never ends", "HTTP/1.1 200 OK\r\nX-Pad: ", 0},
		"a body":   {"a body that never ends", "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", http.StatusOK},
		"chunks":   {"the same without a length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nf4240\r\n", http.StatusOK},
		"hints":    {"informational responses without a final one", "HTTP/1.1 103 Early Hints\r\nX-Pad: ", 0},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			must.Succeed(t, err)
			defer func() { _ = listener.Close() }() // The test is over.
			go dribble(listener, tc.first)
			_, err = New(Options{}).Do(t.Context(), Call{Timeout: 300 * time.Millisecond}, newRequest(t, http.MethodPost, "http://"+listener.Addr().String(), "text"))
			var failure *Error
			if !errors.As(err, &failure) || !failure.Sent || failure.Status != tc.status || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// dribble responds to the request of one connection until that is closed.
func dribble(listener net.Listener, first string) {
	conn, err := listener.Accept()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // The client has gone.
	if _, err = conn.Read(make([]byte, 4<<10)); err != nil {
		return
	}
	_, err = conn.Write([]byte(first))
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for err == nil {
		if first == "" {
			// It waits until the client has gone.
			_, err = conn.Read(make([]byte, 1))
			continue
		}
		<-pause.C
		_, err = conn.Write([]byte("a"))
	}
}

// TestNamed calls addresses that a platform named. localhost shows that the address matters, not the name.
func TestNamed(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer server.Close()
	byName := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	for name, tc := range map[string]struct {
		reason  string
		address string
		call    Call
		options Options
		refused bool
	}{
		"an address inside":        {"a platform must not make Herald call it", server.URL, Call{Named: true}, Options{}, true},
		"a name that leads inside": {"the owner of a name can change its address at any time", byName, Call{Named: true}, Options{}, true},
		"configured":               {"the administrator may name a sandbox", server.URL, Call{}, Options{}, false},
		"allowed":                  {"other addresses are not rejected", server.URL, Call{Named: true}, Options{Allow: func(netip.Addr) error { return nil }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			calls.Store(0)
			_, err := New(tc.options).Do(t.Context(), tc.call, newRequest(t, http.MethodPut, tc.address, "bytes"))
			var failure *Error
			switch {
			case !tc.refused && (err != nil || calls.Load() != 1):
				t.Errorf("%s: %v, %d calls", tc.reason, err, calls.Load())
			case tc.refused && (!errors.As(err, &failure) || failure.Sent || !errors.Is(err, publicaddr.ErrNotPublic) || calls.Load() != 0):
				t.Errorf("%s: %v, %d calls", tc.reason, err, calls.Load())
			}
		})
	}
}

// TestNamedUsesNoOtherConnection checks that a connection without the check does not carry a call that needs it.
func TestNamedUsesNoOtherConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	client := New(Options{})
	if _, err := client.Do(t.Context(), Call{}, newRequest(t, http.MethodGet, server.URL, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(t.Context(), Call{Named: true}, newRequest(t, http.MethodGet, server.URL, "")); !errors.Is(err, publicaddr.ErrNotPublic) {
		t.Errorf("got %v", err)
	}
}

// TestNamedThroughAProxy checks that a proxy, which may have an internal address, makes the call: only the proxy
// resolves the name.
func TestNamedThroughAProxy(t *testing.T) {
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	must.Succeed(t, err)
	client := New(Options{Proxy: http.ProxyURL(at)})
	if _, err := client.Do(t.Context(), Call{Named: true}, newRequest(t, http.MethodPut, "http://upload.example/", "bytes")); err != nil || asked.Load() != 1 {
		t.Errorf("%v, and the proxy got %d requests", err, asked.Load())
	}
	broken := New(Options{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("odd") }})
	if _, err := broken.Do(t.Context(), Call{Named: true}, newRequest(t, http.MethodPut, "http://upload.example/", "bytes")); err == nil {
		t.Error("a call was made with an unknown proxy")
	}
}

// TestProxy makes a call to a platform through a proxy, as set by HTTPS_PROXY.
func TestProxy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		refuses bool
	}{
		"passes on": {"installations behind a proxy need it to publish", false},
		"refuses":   {"the platform did not receive the call, so it may be retried", true},
	} {
		t.Run(name, func(t *testing.T) {
			called := 0
			platform := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
			defer platform.Close()
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tc.refuses || r.Method != http.MethodConnect {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				tunnel(r.Context(), t, w, r.Host)
			}))
			defer proxy.Close()
			roots := x509.NewCertPool()
			roots.AddCert(platform.Certificate())
			address, err := url.Parse(proxy.URL)
			must.Succeed(t, err)
			client := New(Options{Proxy: http.ProxyURL(address), RootCAs: roots})
			_, err = client.Do(t.Context(), Call{}, newRequest(t, http.MethodPost, platform.URL, "text"))
			client.http.CloseIdleConnections()
			var failure *Error
			switch {
			case !tc.refuses && (err != nil || called != 1):
				t.Errorf("%s: got %v, and %d calls", tc.reason, err, called)
			case tc.refuses && (!errors.As(err, &failure) || failure.Sent || called != 0):
				t.Errorf("%s: got %v, and %d calls", tc.reason, err, called)
			}
		})
	}
}

// tunnel connects the client of a CONNECT with its target until both have gone.
func tunnel(ctx context.Context, t *testing.T, w http.ResponseWriter, target string) {
	t.Helper()
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		t.Error(err)
		return
	}
	near, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		t.Error(err)
	}
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
		both.Go(func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		})
	}
	both.Wait()
}
