// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// TestNamedAddresses tests which URLs from a platform's responses may be called.
func TestNamedAddresses(t *testing.T) {
	named := AddressPolicy{
		Hosts:      []string{"*.googleapis.com", "upload.example"},
		Configured: []string{"", "http://127.0.0.1:8080/youtube", "https://gateway.corp", "://"},
	}
	const called, public, refused = "as it is configured", "at public addresses", "not at all"
	for address, tc := range map[string]struct{ reason, want string }{
		"https://www.googleapis.com/upload?id=1":                   {"a host of the platform", public},
		"https://WWW.GoogleAPIs.com/upload":                        {"in any letters", public},
		"https://www.googleapis.com:443/upload":                    {"at its port", public},
		"https://a.b.googleapis.com/upload":                        {"a pattern means all names below", public},
		"https://upload.example/":                                  {"a name means itself", public},
		"https://googleapis.com/upload":                            {"and not the end alone", refused},
		"https://evilgoogleapis.com/upload":                        {"nor a name that only ends so", refused},
		"https://www.googleapis.com.evil.example/":                 {"nor one that begins so", refused},
		"https://www.googleapis.com./upload":                       {"nor another writing of it", refused},
		"https://a.upload.example/":                                {"nor one below a name", refused},
		"http://www.googleapis.com/upload":                         {"not without TLS", refused},
		"https://www.googleapis.com:8443/upload":                   {"not at another port", refused},
		"https://user@www.googleapis.com/upload":                   {"not with a user", refused},
		"https://www.googleapis.com@127.0.0.1/upload":              {"which hides the host", refused},
		"https://www.googleapis.com/upload#a":                      {"not with what a server never sees", refused},
		"https://127.0.0.1/upload":                                 {"no address is a host of the platform", refused},
		"https://[::1]/upload":                                     {"in whatever form", refused},
		"http://127.0.0.1:8080/elsewhere":                          {"what is configured leads where it leads", called},
		"http://127.0.0.1:9090/youtube":                            {"but not to another port", refused},
		"https://127.0.0.1:8080/youtube":                           {"nor by another scheme", refused},
		"https://gateway.corp:443/upload":                          {"a port may be said, or not", called},
		"https://GATEWAY.corp/upload":                              {"and letters do not count", called},
		"http://gateway.corp/upload":                               {"TLS does", refused},
		"ftp://www.googleapis.com/upload":                          {"only the web is called", refused},
		"file:///etc/passwd":                                       {"a file is none of it", refused},
		"//www.googleapis.com/upload":                              {"an address has a scheme", refused},
		"/upload":                                                  {"and a host", refused},
		"":                                                         {"nothing is no address", refused},
		"https://www.googleapis.com/" + strings.Repeat("a", 8<<10): {"what would fill a Secret is none", refused},
		"https://www.googleapis.com/\x7f":                          {"what cannot be read is none", refused},
	} {
		got := called
		where, err := named.resolve(address)
		switch {
		case err != nil:
			got = refused
		case where.named:
			got = public
		}
		if got != tc.want || (named.Check(address) == nil) != (tc.want != refused) {
			t.Errorf("%q is called %s, want %s: %s (%v)", address, got, tc.want, tc.reason, err)
		}
		if err != nil && (strings.Contains(err.Error(), "upload?") || strings.Contains(err.Error(), "/etc")) {
			t.Errorf("the error tells more than the host: %v", err)
		}
	}
}

// TestForeignAddress calls a URL that is not the platform's, as if it came from a response or a Secret. No call reaches
// it, and a token certainly does not.
func TestForeignAddress(t *testing.T) {
	var calls, tokens atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if r.Header.Get("Authorization") != "" {
			tokens.Add(1)
		}
	}))
	defer inside.Close()
	c := Client{Name: "X", BaseURL: "https://api.example", Addresses: AddressPolicy{Hosts: []string{"*.example"}}, Transport: transport.New(transport.Options{})}
	_, err := c.Do(t.Context(), Call{URL: inside.URL, Method: http.MethodPut, Token: "t"})
	if !NotSent(err) || !errors.Is(err, errForeign) || calls.Load() != 0 {
		t.Errorf("got %v, and %d calls", err, calls.Load())
	}
	c.Addresses.Configured = []string{inside.URL}
	if _, err := c.Do(t.Context(), Call{URL: inside.URL, Method: http.MethodPut, Token: "t"}); err != nil || calls.Load() != 1 || tokens.Load() != 0 {
		t.Errorf("got %v, %d calls, %d of them with a token", err, calls.Load(), tokens.Load())
	}
}

// TestUnconfirmed tests that every failure of such a URL has the same message.
func TestUnconfirmed(t *testing.T) {
	c := Client{Name: "X"}
	file := &platforms.File{Name: "a.mp4"}
	lost, unsent := &transport.Error{Sent: true, Err: io.EOF}, &transport.Error{Err: errForeign}
	words := map[string]bool{}
	for _, failure := range []*platforms.Error{
		c.uploadUnanswered(file, lost, true), c.uploadUnanswered(file, unsent, true), c.Unconfirmed(platforms.ClassUnknown, io.EOF),
		c.UploadInDoubt(lost).Err, c.UploadInDoubt(unsent).Err, c.UploadInDoubt(nil).Err,
	} {
		words[failure.Error()] = true
	}
	if len(words) != 1 {
		t.Errorf("failures are told apart: %v", words)
	}
	if got := c.UploadInDoubt(lost).Outcome; got != platforms.Unknown {
		t.Errorf("what was sent is %s", got)
	}
	if got := c.UploadInDoubt(unsent).Outcome; got != platforms.NotSent {
		t.Errorf("what was not sent is %s", got)
	}
}
