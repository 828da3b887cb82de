// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/herald-social/herald/internal/publicaddr"
	"github.com/herald-social/herald/test/must"
)

// TestNamed calls addresses that a platform named. localhost shows that the address counts, and not the name.
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
		"a name that leads inside": {"who owns a name decides where it leads, and changes that", byName, Call{Named: true}, Options{}, true},
		"configured":               {"whoever installs Herald may name a sandbox", server.URL, Call{}, Options{}, false},
		"allowed":                  {"nothing else is refused", server.URL, Call{Named: true}, Options{Allow: func(netip.Addr) error { return nil }}, false},
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

// TestNamedThroughAProxy checks that a proxy, which may well be inside, makes the call: only the proxy resolves the
// name.
func TestNamedThroughAProxy(t *testing.T) {
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	must.Succeed(t, err)
	client := New(Options{Proxy: http.ProxyURL(at)})
	if _, err := client.Do(t.Context(), Call{Named: true}, newRequest(t, http.MethodPut, "http://upload.example/", "bytes")); err != nil || asked.Load() != 1 {
		t.Errorf("%v, and the proxy was asked %d times", err, asked.Load())
	}
	broken := New(Options{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("odd") }})
	if _, err := broken.Do(t.Context(), Call{Named: true}, newRequest(t, http.MethodPut, "http://upload.example/", "bytes")); err == nil {
		t.Error("a call was made although it is not known through which proxy")
	}
}
