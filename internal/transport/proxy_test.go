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
	"net/url"
	"sync"
	"testing"
)

// TestProxy makes a call to a platform through a proxy, as set by HTTPS_PROXY.
func TestProxy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		refuses bool
	}{
		"passes on": {"what an installation behind a proxy needs to publish", false},
		"refuses":   {"nothing has reached the platform: the call may be made again", true},
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
			if err != nil {
				t.Fatal(err)
			}
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
