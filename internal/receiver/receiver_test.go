// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/publicaddr"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// anywhere permits all addresses, so that tests can reach their own server.
func anywhere(netip.Addr) error { return nil }

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func trusting(s *httptest.Server, o Options) *Client {
	o.Roots, o.Clock = x509.NewCertPool(), clocktesting.NewFakePassiveClock(noon)
	o.Roots.AddCert(s.Certificate())
	return New(o)
}

func TestPost(t *testing.T) {
	var elsewhere atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscan(r.PathValue("code"), &code)
		w.Header().Set("Retry-After", r.URL.Query().Get("after"))
		w.WriteHeader(code)
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/slow-body", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices the end of the client only after the body
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	mux.HandleFunc("/closes", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/many-headers", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("a", 2*maxHeader)) })
	s := serve(t, mux)
	for name, tc := range map[string]struct {
		path, want string
		gone       bool
		after      time.Duration
	}{
		"any 2xx is a success":                        {path: "/status/200"},
		"also without a body":                         {path: "/status/204"},
		"also if the work is done later":              {path: "/status/202"},
		"a body without an end is not read":           {path: "/endless"},
		"a slow body is not read":                     {path: "/slow-body"},
		"a server error is retried":                   {path: "/status/500", want: "it responded with status 500"},
		"a retry waits for Retry-After":               {path: "/status/503?after=120", want: "it responded with status 503", after: 2 * time.Minute},
		"or until the time that it names":             {path: "/status/429?after=Tue,+01+Dec+2026+12:30:00+GMT", want: "it responded with status 429", after: 30 * time.Minute},
		"a nonsensical pause is ignored":              {path: "/status/429?after=soon", want: "it responded with status 429"},
		"a time that has passed is no pause":          {path: "/status/429?after=Tue,+01+Dec+2026+11:30:00+GMT", want: "it responded with status 429"},
		"the receiver wants no more":                  {path: "/status/410", want: "it reported that it no longer exists (410)", gone: true},
		"a redirect would send the content elsewhere": {path: "/redirect", want: "it responded with a redirect (307); enter the URL that it redirects to"},
		"a server that hangs":                         {path: "/hangs", want: "it took too long to respond"},
		"a server that closes the connection":         {path: "/closes", want: "the connection to it failed"},
		"headers that would fill the memory":          {path: "/many-headers", want: "the connection to it failed"},
		"404 may be temporary during an update":       {path: "/status/404", want: "it responded with status 404"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := time.Minute
			if tc.path == "/hangs" {
				timeout = 100 * time.Millisecond
			}
			err := trusting(s, Options{Allow: anywhere, Timeout: timeout}).Post(t.Context(), s.URL+tc.path, nil, []byte("{}"))
			var refused *Error
			if !errors.As(err, &refused) {
				refused = &Error{}
				if err != nil {
					t.Fatalf("%v is no *Error", err)
				}
			}
			if refused.Message != tc.want || refused.Gone != tc.gone || refused.RetryAfter != tc.after {
				t.Errorf("got %+v", refused)
			}
		})
	}
	if elsewhere.Load() > 0 {
		t.Error("the redirect was followed")
	}
}

func TestAddresses(t *testing.T) {
	var requests atomic.Int32
	s := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	const inside, invalid = "its URL does not resolve to a public address", "its URL must use https and must not contain a user name"
	for address, tc := range map[string]struct{ want, reason string }{
		s.URL:                        {inside, "the manager's own host"},
		"https://169.254.169.254/":   {inside, "the metadata of a cloud"},
		"https://[::1]:443/":         {inside, "loopback by IPv6"},
		"https://nowhere.invalid/":   {inside, "an unresolvable name has the same message, so names of the internal network are not revealed"},
		"http://example.com/":        {invalid, "the content would be readable on the way"},
		"https://a:b@example.com/":   {invalid, "conditions and logs would show the password"},
		"file:///etc/passwd":         {invalid, "only https"},
		"https:///path":              {invalid, "no server"},
		"https://exa mple.com/\x00":  {invalid, "no URL"},
		"https://kubernetes.default": {inside, "a name of the cluster"},
	} {
		t.Run(address, func(t *testing.T) {
			err := trusting(s, Options{}).Post(t.Context(), address, nil, nil)
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
	if requests.Load() > 0 {
		t.Error("a request arrived")
	}
	// The address is checked at the connection, after the name was resolved.
	checked := ""
	client := trusting(s, Options{Allow: func(a netip.Addr) error {
		checked = a.String()
		return publicaddr.ErrNotPublic
	}})
	if err := client.Post(t.Context(), strings.Replace(s.URL, "127.0.0.1", "localhost", 1), nil, nil); err == nil || checked == "" {
		t.Errorf("localhost was not checked: %v", err)
	}
}

func TestShutdownIsNotTheReceiversFailure(t *testing.T) {
	s := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := trusting(s, Options{Allow: anywhere}).Post(ctx, s.URL, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
