// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestDribble calls a server that continues its response a byte at a time, without an end: the timeout of a call is one
// for the whole.
func TestDribble(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, first string
		status        int
	}{
		"nothing":  {"a server that says nothing at all", "", 0},
		"a header": {"a header that never ends", "HTTP/1.1 200 OK\r\nX-Pad: ", 0},
		"a body":   {"a body that never ends", "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", http.StatusOK},
		"chunks":   {"the same without a length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nf4240\r\n", http.StatusOK},
		"hints":    {"answers that are none yet", "HTTP/1.1 103 Early Hints\r\nX-Pad: ", 0},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
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
