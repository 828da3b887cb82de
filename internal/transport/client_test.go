// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestDoSpeaksHTTP1(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		offers bool
	}{
		"the server offers HTTP/2":      {"a connection of HTTP/2 carries many calls, and its loss leaves all of them in doubt", true},
		"the server knows nothing else": {"what every server speaks", false},
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
				t.Errorf("the call was made in %s: %s", got, tt.reason)
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
		"nothing is said": {"platforms want to know who calls", "", "herald"},
		"the request's":   {"the one who makes the request knows better", "other", "other"},
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
				t.Errorf("the call came from %q, want %q: %s", got, tt.wants, tt.reason)
			}
		})
	}
}

func TestIdleConnections(t *testing.T) {
	if kept := transportOf(t, New(Options{})).MaxIdleConnsPerHost; kept != 512 {
		t.Errorf("%d connections to a host are kept; 512 calls to one platform may be in flight at once", kept)
	}
}

func TestErrorTellsHowFarTheCallCame(t *testing.T) {
	for _, tt := range []struct {
		reason string
		err    Error
		wants  string
	}{
		{"nothing can have happened", Error{Err: io.EOF}, "the request was not sent: EOF"},
		{"the platform answered, with a status that says something", Error{Sent: true, Status: 201, Err: io.EOF}, "the answer with status 201 could not be read: EOF"},
		{"anything can have happened", Error{Sent: true, Err: io.EOF}, "the request was sent, but no answer came: EOF"},
	} {
		if got := tt.err.Error(); got != tt.wants {
			t.Errorf("got %q, want %q: %s", got, tt.wants, tt.reason)
		}
	}
}

func TestCauseNamesTheBoundThatWasPassed(t *testing.T) {
	passed, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, tt := range []struct {
		reason string
		ctx    context.Context
		err    error
		named  bool
	}{
		{"the call took too long", passed, context.DeadlineExceeded, true},
		{"another bound was passed, that of the dialer for one", t.Context(), context.DeadlineExceeded, false},
		{"the call failed for another reason while its time ran out", passed, io.EOF, false},
	} {
		err := cause(tt.ctx, tt.err, 3*time.Second)
		if !errors.Is(err, tt.err) || strings.Contains(err.Error(), "within 3s") != tt.named {
			t.Errorf("%s: got %q", tt.reason, err)
		}
	}
}
