// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/herald-social/herald/test/must"
)

// fate is what the proxy does with a call.
type fate int

const (
	passes fate = iota
	// cutBefore closes the connection instead of passing the call on, and cutAfter closes it once the server has processed
	// the call.
	cutBefore
	cutAfter
)

// request is a call that writes to an account's repository.
type request struct {
	method string
	body   []byte
}

const (
	putRecord  = "com.atproto.repo.putRecord"
	uploadBlob = "com.atproto.repo.uploadBlob"
)

// cut starts a proxy for the server and returns its address. decide returns the fate of each putRecord and uploadBlob
// call. cuts counts the calls whose connection was closed.
func cut(t *testing.T, s *server, decide func(request) fate) (address string, cuts *atomic.Int64) {
	t.Helper()
	to, err := url.Parse(s.URL)
	must.Succeed(t, err)
	forward := httputil.NewSingleHostReverseProxy(to)
	forward.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // killed managers abort their calls
	hangUp := func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	cuts = &atomic.Int64{}
	proxy := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := path.Base(r.URL.Path)
		if method != putRecord && method != uploadBlob {
			forward.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		decided := decide(request{method, body})
		if err != nil || decided == passes {
			forward.ServeHTTP(w, r)
			return
		}
		cuts.Add(1)
		if decided == cutAfter {
			forward.ServeHTTP(discard{http.Header{}}, r)
		}
		hangUp(w)
	})}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	go func() { _ = proxy.Serve(listener) }()
	t.Cleanup(func() { _ = proxy.Close() })
	return "http://" + listener.Addr().String(), cuts
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
