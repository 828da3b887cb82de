// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connlimit bounds the connections that a server of package net/http holds: how many in all, and how many of one
// address. Each costs some 18 KiB, with or without a request, and anybody who reaches the port can open them.
//
// golang.org/x/net/netutil has a listener that lets further clients wait. Whoever holds all places without a word would keep
// everybody else waiting; here the oldest connection without a request makes room, and then the oldest whose request is a stranger's.
package connlimit

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// longHeader is how much of an unfinished header is read before it counts as a long one, in bytes. It is more than a
	// request has without cookies, and a TLS handshake before it.
	longHeader = 4 << 10
	// maxLongHeaders is how many connections may have a long header that is not finished. Each holds a few times its size.
	maxLongHeaders = 128
	// shortestIdle is how long a connection may be without a request at least, as long as there is room.
	shortestIdle = 5 * time.Second
	// settling is how long a connection may take for its handshake and the header of its request.
	settling = 5 * time.Second
)

// Bound is a bound that was reached.
type Bound string

// The bounds.
const (
	// BoundPerAddress is that of one address, BoundTotal that of all, and BoundHeaders that of long headers that are not finished.
	BoundPerAddress Bound = "address"
	BoundTotal      Bound = "all"
	BoundHeaders    Bound = "headers"
)

// Options say what is bounded.
type Options struct {
	// Total and PerAddress are how many connections there may be, and how many of one address; zero bounds neither.
	Total, PerAddress int
	// Idle is how long a connection may be without a request while there is room for many more. It is the IdleTimeout of the
	// server; the time is shorter when more than half of Total is taken.
	Idle time.Duration
	// Peer returns what the connections from an address are counted by; "" if their number is not bounded by address. It may be
	// nil if PerAddress is zero.
	Peer func(net.Addr) string
	// Reached, which may be nil, is called when a connection was closed or refused for the sake of a bound, with what the new
	// one is counted by.
	Reached func(bound Bound, peer string)
	Clock   clock.PassiveClock
}

// Pool counts the connections of a server, which has State as its ConnState and accepts them from a Listener. It is safe for
// concurrent use.
type Pool struct {
	Options

	mu    sync.Mutex
	total int
	lists evictable
	// long holds those with a long header that is not finished.
	long  list.List
	peers map[string]*peer
}

// evictable are the connections that make room for others, in the order in which they do.
type evictable struct {
	// idle have no request, the first one for the longest time. The requests of strangers have not been vouched for.
	idle, unauthenticated list.List
}

// victim is the connection that makes room; nil if all are busy for somebody who is known. One that has just come, or has just
// been answered, stays before a stranger's request that has been under way for longer: otherwise stuck requests and a stream of
// new connections would leave nobody the time for a handshake.
func (w *evictable) victim(now time.Time) *conn {
	quiet, stranger := front(&w.idle), front(&w.unauthenticated)
	if quiet == nil || stranger != nil && now.Sub(quiet.since) < settling && stranger.since.Before(quiet.since) {
		return stranger
	}
	return quiet
}

// peer is what is known of the connections of one address.
type peer struct {
	count int
	lists evictable
}

// New returns a Pool without connections.
func New(options Options) *Pool {
	return &Pool{Options: options, peers: map[string]*peer{}}
}

// Listener returns a listener whose connections are counted.
func (p *Pool) Listener(from net.Listener) net.Listener { return &listener{from, p} }

type listener struct {
	net.Listener

	pool *Pool
}

// Accept returns the next connection for which there is room.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // http.Server knows the errors of a listener
		}
		if c := l.pool.admit(accepted); c != nil {
			return c, nil
		}
	}
}

// conn is a connection that is counted.
type conn struct {
	net.Conn

	pool *Pool
	peer string
	// busy says that a request is being served. The header of one has been read in full then.
	busy atomic.Bool

	// What follows is guarded by the pool.

	released bool
	// since is when the connection came, its request began, or its last one was answered, and read how much has been read
	// since then.
	since time.Time
	read  int
	// inPool, inPeer and inLong are its places in the lists; nil where it is in none.
	inPool, inPeer, inLong *list.Element
}

type connKey struct{}

// Context is the ConnContext of the server: it lets Voucher find the connection of a request.
func (p *Pool) Context(ctx context.Context, of net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, unwrap(of))
}

// Authenticator returns a function that marks the connection of a request as that of a known caller. Until the answer, the connection
// makes room for no other.
func Authenticator(ctx context.Context) func() {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok || c == nil {
		return func() {}
	}
	return func() {
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		if c.busy.Load() {
			c.pool.unlist(c)
		}
	}
}

// admit counts a new connection and makes room for it. It returns nil, and closes the connection, if all others have requests of people who are known.
func (p *Pool) admit(accepted net.Conn) *conn {
	c := &conn{Conn: accepted, pool: p}
	if p.Peer != nil {
		c.peer = p.Peer(accepted.RemoteAddr())
	}
	p.mu.Lock()
	c.since = p.Clock.Now()
	closing, bound, room := p.evict(c)
	if room {
		p.add(c)
	} else {
		closing = append(closing, c)
	}
	p.mu.Unlock()
	for _, one := range closing {
		_ = one.Conn.Close() // its client has gone, or learns of it
	}
	if bound != "" && p.Reached != nil {
		p.Reached(bound, c.peer)
	}
	if !room {
		return nil
	}
	return c
}

// evict takes connections without a request out of the pool, so that a new one has room, and returns those to close. bound
// is what they are closed for; it is empty if they were only idle for too long.
func (p *Pool) evict(c *conn) (closing []*conn, bound Bound, room bool) {
	for idle := p.idle(); p.lists.idle.Len() > 0; {
		oldest := front(&p.lists.idle)
		if c.since.Sub(oldest.since) < idle {
			break
		}
		p.release(oldest)
		closing = append(closing, oldest)
	}
	if of := p.peers[c.peer]; c.peer != "" && of != nil && p.PerAddress > 0 && of.count >= p.PerAddress {
		bound = BoundPerAddress
		oldest := of.lists.victim(c.since)
		if oldest == nil {
			return closing, bound, false
		}
		p.release(oldest)
		closing = append(closing, oldest)
	}
	if p.Total > 0 && p.total >= p.Total {
		bound = BoundTotal
		oldest := p.lists.victim(c.since)
		if oldest == nil {
			return closing, bound, false
		}
		p.release(oldest)
		closing = append(closing, oldest)
	}
	return closing, bound, true
}

// idle is how long a connection may be without a request now: the less room there is, the shorter. The server itself sees to it
// while half of the places are free.
func (p *Pool) idle() time.Duration {
	const server = time.Duration(1<<63 - 1)
	free := p.Total - p.total
	if p.Total <= 0 || 2*free >= p.Total {
		return server
	}
	return max(p.Idle*time.Duration(2*free)/time.Duration(p.Total), shortestIdle)
}

// add takes a connection in.
func (p *Pool) add(c *conn) {
	p.total++
	if p.peers[c.peer] == nil {
		p.peers[c.peer] = &peer{}
	}
	p.peers[c.peer].count++
	p.markIdle(c)
}

// release takes a connection out.
func (p *Pool) release(c *conn) {
	if c.released {
		return
	}
	p.unlist(c)
	c.released = true
	p.total--
	if of := p.peers[c.peer]; of.count > 1 {
		of.count--
	} else {
		delete(p.peers, c.peer)
	}
}

// markIdle enters a connection among those without a request, as the last.
func (p *Pool) markIdle(c *conn) {
	c.inPool, c.inPeer = p.lists.idle.PushBack(c), p.peers[c.peer].lists.idle.PushBack(c)
}

// markUnauthenticated enters a connection among those with the request of a stranger, as the last.
func (p *Pool) markUnauthenticated(c *conn) {
	c.inPool, c.inPeer = p.lists.unauthenticated.PushBack(c), p.peers[c.peer].lists.unauthenticated.PushBack(c)
}

// unlist removes a connection from those that make room.
func (p *Pool) unlist(c *conn) {
	if c.inPool != nil {
		own := &p.peers[c.peer].lists
		// An element of another list stays where it is.
		p.lists.idle.Remove(c.inPool)
		p.lists.unauthenticated.Remove(c.inPool)
		own.idle.Remove(c.inPeer)
		own.unauthenticated.Remove(c.inPeer)
	}
	if c.inLong != nil {
		p.long.Remove(c.inLong)
	}
	c.inPool, c.inPeer, c.inLong, c.read = nil, nil, nil, 0
}

// front is the first connection of a list; nil if there is none.
func front(of *list.List) *conn {
	if of.Front() == nil {
		return nil
	}
	return of.Front().Value.(*conn) //nolint:forcetypeassert // nothing else is in a list
}

// State notes what becomes of a connection; it is the ConnState of the server. A connection is active once the header of a
// request has been read in full, and idle after the answer.
func (p *Pool) State(of net.Conn, state http.ConnState) {
	c := unwrap(of)
	if c == nil || c.pool != p {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.released {
		return
	}
	switch state {
	case http.StateActive:
		p.unlist(c)
		c.since = p.Clock.Now()
		c.busy.Store(true)
		p.markUnauthenticated(c)
	case http.StateIdle:
		p.unlist(c)
		c.since = p.Clock.Now()
		c.busy.Store(false)
		p.markIdle(c)
	case http.StateClosed, http.StateHijacked:
		p.release(c)
	case http.StateNew:
	}
}

// unwrap finds the connection that is counted beneath others; nil if there is none.
func unwrap(of net.Conn) *conn {
	for of != nil {
		if c, ok := of.(*conn); ok {
			return c
		}
		above, ok := of.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		of = above.NetConn()
	}
	return nil
}

// Read reads, and counts what is read of a header.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.busy.Load() {
		c.pool.countHeader(c, n)
	}
	return n, err //nolint:wrapcheck // net/http knows the errors of a connection
}

// countHeader notes that so much of a header was read. Of the connections with a long one the oldest is closed if they are too many.
func (p *Pool) countHeader(c *conn, n int) {
	p.mu.Lock()
	var oldest *conn
	if c.read += n; c.inPool != nil && c.inLong == nil && c.read > longHeader {
		c.inLong = p.long.PushBack(c)
		if p.long.Len() > maxLongHeaders {
			oldest = front(&p.long)
			p.release(oldest)
		}
	}
	p.mu.Unlock()
	if oldest == nil {
		return
	}
	_ = oldest.Conn.Close() // as above
	if p.Reached != nil {
		p.Reached(BoundHeaders, c.peer)
	}
}

// Close closes the connection and gives up its place.
func (c *conn) Close() error {
	c.pool.mu.Lock()
	c.pool.release(c)
	c.pool.mu.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // as in Read
}

// CloseWrite ends what is sent, and leaves open what is received, where the connection can.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // as in Read
	}
	return nil
}
