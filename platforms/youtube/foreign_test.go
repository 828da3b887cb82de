// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// TestForeignSession gives Herald a session URL that is not YouTube's, in YouTube's response and in the Secret that
// stores it. It must not be called, even if everything else matches.
func TestForeignSession(t *testing.T) {
	var calls atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer inside.Close()
	for reason, address := range map[string]string{
		"a service inside": inside.URL + "/-/quit", "another site": "https://upload.evil.example/session",
		"YouTube without TLS":                 "http://www.googleapis.com/session",
		"a host that only looks like YouTube": "https://www.googleapis.com.evil.example/session",
	} {
		t.Run(reason, func(t *testing.T) {
			p, g := newGoogle(t, says(200, "", "Location", address))
			job := videoJob(unit + 7)
			job.StoreCheckpoint = func(context.Context, string, string) error {
				t.Error("it was kept")
				return nil
			}
			if checkpoint, failure := p.Prepare(t.Context(), job); failure == nil || failure.Problem != msgNoSession {
				t.Errorf("got %q, %v", checkpoint, failure)
			}
			s := session{address: address, last: unit}
			job.Checkpoint, job.Secret = s.checkpoint(), s.secret()
			if got := p.Publish(t.Context(), job); got.Outcome != platforms.Refused || got.Err.Class != platforms.ClassTransient {
				t.Errorf("got %+v", got)
			}
			g.answers = []http.HandlerFunc{says(200, `{"items":[]}`)}
			if got, err := p.Lookup(t.Context(), job); got.Matches != 0 || got.Proof || err == nil {
				t.Errorf("a look found %+v, %v; what another says is no proof", got, err)
			}
		})
	}
	if calls.Load() != 0 {
		t.Errorf("the service inside was called %d times", calls.Load())
	}
}

// TestFailuresReadAlike makes a session URL respond in every way that is not YouTube's. All messages must be equal,
// because different ones would reveal the kind of server.
func TestFailuresReadAlike(t *testing.T) {
	words := map[string][]string{}
	try := func(what, base string) {
		p := New(Config{APIURL: base, Clock: clocktesting.NewFakeClock(noon)}, transport.New(transport.Options{}))
		s := session{address: base + "/session", last: unit}
		job := videoJob(unit + 7)
		job.Checkpoint, job.Secret = s.checkpoint(), s.secret()
		_, failure := p.Prepare(t.Context(), job)
		published := p.Publish(t.Context(), job)
		_, err := p.Lookup(t.Context(), job)
		for _, said := range []string{fmt.Sprint(failure), fmt.Sprint(published.Err), fmt.Sprint(err)} {
			words[said] = append(words[said], what)
		}
	}
	for _, status := range []int{200, 204, 301, 302, 400, 401, 403, 405, 418, 429, 500, 503} {
		server := httptest.NewServer(says(status, "<html>inside</html>"))
		try(fmt.Sprint("status ", status), server.URL)
		server.Close()
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	try("a closed port", closed.URL)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // The test is over.
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-x\r\n")) // The client may have closed the connection.
			_ = conn.Close()
		}
	}()
	try("no web server", "http://"+listener.Addr().String())
	if len(words) != 1 {
		t.Errorf("failures are told apart: %v", words)
	}
}
