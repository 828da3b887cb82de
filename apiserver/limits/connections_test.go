// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// testConn is a connection with an address and data to send. It records whether it was closed.
type testConn struct {
	net.Conn

	from   string
	closed bool
}

func (c *testConn) RemoteAddr() net.Addr       { return &net.UnixAddr{Name: c.from} }
func (c *testConn) Close() error               { c.closed = true; return nil }
func (c *testConn) Read(b []byte) (int, error) { return len(b), nil }

// proxy is exempt from the per-address limit.
const proxy = "proxy"

func peerOf(from net.Addr) string {
	if from.String() == proxy {
		return ""
	}
	return from.String()
}

// TestRoom has clients connect one after another, a second apart, to a server with four places, two per address.
func TestRoom(t *testing.T) {
	t.Parallel()
	type step struct {
		// from is the client that connects; otherwise state is the new state of the nth connection.
		from  string
		state http.ConnState
		nth   int
		// known marks its request as authenticated.
		known bool
		// closed are the connections that are closed as a result, numbered in order of arrival.
		closed  []int
		reached ConnectionBound
	}
	come := func(from string, closed ...int) step { return step{from: from, closed: closed} }
	turn := func(nth int, state http.ConnState) step { return step{nth: nth, state: state} }
	known := func(nth int) step { return step{nth: nth, state: http.StateActive, known: true} }
	for name, tc := range map[string]struct {
		reason string
		steps  []step
	}{
		"room": {"all connections are accepted", []step{come("a"), come("a"), come("b"), come("b")}},
		"one address": {"the oldest connection of the address is closed", []step{
			come("b"), come("a"), come("a"), {from: "a", closed: []int{1}, reached: BoundPerAddress}, {from: "a", closed: []int{1, 2}, reached: BoundPerAddress},
		}},
		"busy": {"a connection with a request remains, and the next one is closed", []step{
			come("a"), come("a"), turn(0, http.StateActive), {from: "a", closed: []int{1}, reached: BoundPerAddress},
		}},
		"all busy": {"the new connection is rejected", []step{
			come("a"), come("a"), known(0), known(1), {from: "a", closed: []int{2}, reached: BoundPerAddress}, come("b", 2),
		}},
		"idle again": {"the most recently used connection remains", []step{
			come("a"), come("a"), turn(0, http.StateActive), turn(0, http.StateIdle), {from: "a", closed: []int{1}, reached: BoundPerAddress},
		}},
		"gone": {"a closed connection does not count", []step{
			come("a"), come("a"), turn(0, http.StateClosed), turn(0, http.StateClosed), come("a"),
		}},
		"proxy": {"a proxy has many visitors' connections, and may use all", []step{
			come(proxy), come(proxy), come(proxy), come(proxy), {from: proxy, closed: []int{0}, reached: BoundTotal},
		}},
		"full": {"the oldest connection is closed", []step{
			come("a"), come("b"), come("c"), come("d"), {from: "e", closed: []int{0}, reached: BoundTotal},
		}},
		"full and busy": {"the new connection is rejected", []step{
			come("a"), come("b"), come("c"), come("d"), known(0), known(1), known(2), known(3), {from: "e", closed: []int{4}, reached: BoundTotal},
		}},
		"strangers": {"unauthenticated requests are closed when no connection is idle, the oldest first", []step{
			come("a"), come("b"), come("c"), come("d"), known(0), turn(2, http.StateActive), turn(1, http.StateActive), known(3),
			{from: "e", closed: []int{2}, reached: BoundTotal},
			turn(4, http.StateActive),
			{from: "e", closed: []int{1, 2}, reached: BoundTotal},
		}},
		"stuck strangers": {"a new connection has time for its handshake, even if others keep arriving", []step{
			come("a"), come("b"), come("c"), come("d"), turn(0, http.StateActive), turn(1, http.StateActive), turn(2, http.StateActive), turn(3, http.StateActive),
			{from: "e", closed: []int{0}, reached: BoundTotal},
			{from: "f", closed: []int{0, 1}, reached: BoundTotal},
			{from: "g", closed: []int{0, 1, 2}, reached: BoundTotal},
		}},
		"authenticated once": {"the next request on the connection may be another user's", []step{
			come("a"), come("a"), known(0), turn(0, http.StateIdle), turn(0, http.StateActive), known(1), {from: "a", closed: []int{0}, reached: BoundPerAddress},
		}},
		"hijacked": {"the server no longer counts a hijacked connection", []step{
			come("a"), come("a"), turn(0, http.StateActive), turn(0, http.StateHijacked), come("a"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			var reached ConnectionBound
			pool := NewConnectionPool(ConnectionOptions{Total: 4, PerAddress: 2, Idle: time.Hour, Peer: peerOf, Clock: clk, Reached: func(b ConnectionBound, _ string) { reached = b }})
			var came []*testConn
			var conns []*conn
			for i, s := range tc.steps {
				clk.SetTime(clk.Now().Add(time.Second))
				reached = ""
				if s.from != "" {
					came = append(came, &testConn{from: s.from})
					conns = append(conns, pool.admit(came[len(came)-1]))
				} else {
					pool.State(conns[s.nth], s.state)
					if s.known {
						Authenticator(pool.Context(t.Context(), conns[s.nth]))()
					}
				}
				var closed []int
				for n, c := range came {
					if c.closed {
						closed = append(closed, n)
					}
				}
				if diff := cmp.Diff(s.closed, closed); diff != "" && s.from != "" || reached != s.reached {
					t.Fatalf("%s: after step %d the bound %q was reached, want %q; closed (-want +got):\n%s", tc.reason, i, reached, s.reached, diff)
				}
			}
		})
	}
}

// TestIdle checks that the idle timeout becomes shorter as the places fill up.
func TestIdle(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		taken  int
		idle   time.Duration
		closed bool
	}{
		"half":        {"the server closes idle connections itself", 50, time.Hour, false},
		"two thirds":  {"two thirds of the time remain", 66, 81 * time.Second, false},
		"a bit later": {"two thirds of the time have passed", 66, 83 * time.Second, true},
		"nearly full": {"the minimum time", 98, 4 * time.Second, false},
		"later":       {"the minimum time has passed", 98, 6 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			pool := NewConnectionPool(ConnectionOptions{Total: 100, Idle: 2 * time.Minute, Clock: clk})
			oldest := &testConn{}
			pool.admit(oldest)
			clk.SetTime(clk.Now().Add(tc.idle))
			for range tc.taken - 1 {
				pool.State(pool.admit(&testConn{}), http.StateActive) // an active connection stays
			}
			pool.admit(&testConn{})
			if oldest.closed != tc.closed {
				t.Errorf("%s: with %d of 100 places taken and idle for %s, closed: %v", tc.reason, tc.taken, tc.idle, oldest.closed)
			}
		})
	}
}

// TestLongHeaders checks that unfinished headers from any number of addresses do not fill the memory.
func TestLongHeaders(t *testing.T) {
	t.Parallel()
	reached := 0
	pool := NewConnectionPool(ConnectionOptions{Clock: clock.RealClock{}, Reached: func(b ConnectionBound, _ string) {
		if b == BoundHeaders {
			reached++
		}
	}})
	var came []*testConn
	read := func(c *conn, much int) {
		if _, err := c.Read(make([]byte, much)); err != nil {
			t.Error(err)
		}
	}
	for range 2 * maxLongHeaders {
		came = append(came, &testConn{})
		c := pool.admit(came[len(came)-1])
		read(c, longHeader)
		read(c, longHeader)
	}
	finished, short := &testConn{}, &testConn{}
	c := pool.admit(finished)
	read(c, 2*longHeader)
	pool.State(c, http.StateActive)
	read(c, 100*longHeader) // a body
	pool.State(c, http.StateIdle)
	read(pool.admit(short), longHeader)
	closed := 0
	for _, c := range came {
		if c.closed {
			closed++
		}
	}
	// One of them made room for the finished header.
	if want := maxLongHeaders + 1; closed != want || !came[0].closed || came[len(came)-1].closed || reached != want {
		t.Errorf("%d connections with long headers were closed, %d reported it; want the oldest %d", closed, reached, want)
	}
	if finished.closed || short.closed || pool.long.Len() != maxLongHeaders-1 || pool.total != maxLongHeaders+1 {
		t.Errorf("closed: a complete request (%v), a short one (%v); %d long headers on %d connections remain", finished.closed, short.closed, pool.long.Len(), pool.total)
	}
}

// TestServer checks the limits on a real server, behind TLS: a client that keeps sending requests is served throughout.
func TestServer(t *testing.T) {
	t.Parallel()
	const perAddress, strangers = 8, 50
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	pool := NewConnectionPool(ConnectionOptions{Total: 100, PerAddress: perAddress, Idle: time.Minute, Clock: clock.RealClock{}, Peer: func(net.Addr) string { return "all" }})
	server.Listener = pool.Listener(server.Listener)
	server.Config.ConnState = pool.State
	server.StartTLS()
	defer server.Close()
	// httptest has its own ConnState, which calls this one.
	transport, _ := server.Client().Transport.(*http.Transport)
	for range strangers {
		c, err := tls.Dial("tcp", server.Listener.Addr().String(), transport.TLSClientConfig)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		answer, err := server.Client().Post(server.URL, "text/plain", strings.NewReader("still here"))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "still here" {
			t.Fatalf("got %q, %v", body, err)
		}
		answer.Body.Close()
	}
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if pool.total > perAddress {
		t.Errorf("%d connections remain, want at most %d", pool.total, perAddress)
	}
}
