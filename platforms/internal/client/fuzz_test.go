// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// FuzzNamed checks that a URL from a platform's response only leads to the platform's hosts or to a configured address.
// It compares the host that is really called rather than the one that the URL seems to contain.
func FuzzNamed(f *testing.F) {
	for _, seed := range []string{
		"https://www.googleapis.com/upload?id=1", "https://WWW.GoogleAPIs.com:443/", "https://upload.example", "http://127.0.0.1:8080/a", "https://gateway.corp:443/b",
		"https://www.googleapis.com@127.0.0.1/", "https://127.0.0.1\\.googleapis.com/", "https://127.0.0.1%2f.googleapis.com/", "https://evil.example\u3002googleapis.com/",
		"https://[::1%25.googleapis.com]/", "https://[::1].googleapis.com/", "https://a.googleapis.com:/", "https://a.googleapis.com:0443/", "HTTPS://upload.example:443#",
		"https:upload.example", "//upload.example/", "https://upload.e\u212Aample/", "https://.googleapis.com/", "https://a..googleapis.com/", "http://127.0.0.1:8080@upload.example/",
		"https://evilgoogleapis.com/", "https://a.googleapis.com.evil.example/", "https://a.googleapis.com:8443/", "http://a.googleapis.com/", "https://127.0.0.1:8080/",
	} {
		f.Add(seed)
	}
	named := AddressPolicy{Hosts: []string{"*.googleapis.com", "upload.example"}, Configured: []string{"", "http://127.0.0.1:8080/youtube", "https://gateway.corp", "://"}}
	configured := []string{"127.0.0.1:8080", "gateway.corp:443"}
	f.Fuzz(func(t *testing.T, address string) {
		where, err := named.resolve(address)
		if err != nil {
			if where != (resolvedAddress{}) || len(err.Error()) > 512 {
				t.Errorf("%q is refused, and yet led to %+v, or with too many words: %v", address, where, err)
			}
			return
		}
		u, err := url.Parse(where.address)
		if err != nil || where.address != address || u.User != nil {
			t.Fatalf("%q is called as %q: %v", address, where.address, err)
		}
		if where.named && u.Scheme != "https" {
			t.Errorf("%q is called without TLS", address)
		}
		host := called(t, address)
		name, port, _ := net.SplitHostPort(host)
		switch {
		case host == "": // net/http rejects it
		case !where.named && slices.Contains(configured, host):
		case where.named && port == "443" && (name == "upload.example" || strings.HasSuffix(name, ".googleapis.com")):
		default:
			t.Errorf("%q leads to %s (%+v)", address, host, where)
		}
	})
}

// called returns the host and port that net/http dials for a URL, or "" if it dials none.
func called(t *testing.T, address string) (host string) {
	t.Helper()
	errDialed := errors.New("dialed")
	dialed := make(chan string, 1)
	transport := &http.Transport{DialContext: func(_ context.Context, _, host string) (net.Conn, error) {
		dialed <- host
		return nil, errDialed
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, http.NoBody)
	if err != nil {
		return ""
	}
	answer, err := transport.RoundTrip(r)
	if err == nil {
		_ = answer.Body.Close()
		t.Fatalf("%q is answered", address)
	}
	if !errors.Is(err, errDialed) {
		return ""
	}
	return strings.ToLower(<-dialed)
}
