// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

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
	// An unfinished header of more than longHeader bytes counts as long. This is more than a request without cookies and
	// the TLS handshake before it.
	longHeader = 4 << 10
	// maxLongHeaders limits connections with a long unfinished header. Each takes a few times its size.
	maxLongHeaders = 128
	// shortestIdle is the minimum time that a connection may be idle while there is room.
	shortestIdle = 5 * time.Second
	// settling is how long a connection may take for its handshake and its request's header.
	settling = 5 * time.Second
)

// ConnectionBound is a limit that was reached.
type ConnectionBound string

const (
	// BoundPerAddress is the limit per address.
	BoundPerAddress ConnectionBound = "address"
	// BoundTotal is the limit for all connections.
	BoundTotal ConnectionBound = "all"
	// BoundHeaders is the limit for long unfinished headers.
	BoundHeaders ConnectionBound = "headers"
)

// ConnectionOptions are a ConnectionPool's limits.
type ConnectionOptions struct {
	// Total and PerAddress limit the connections in total and per address; zero means unlimited.
	Total, PerAddress int
	// Idle is how long a connection may be idle while there is room for many more. It equals the server's IdleTimeout;
	// it is shorter when more than half of Total is used.
	Idle time.Duration
	// Peer returns an address's key for PerAddress; "" exempts it. It may be nil if PerAddress is zero.
	Peer func(net.Addr) string
	// Reached is called with the new connection's key when a connection was closed or refused because of a limit; may
	// be nil.
	Reached func(bound ConnectionBound, peer string)
	Clock   clock.PassiveClock
}

// ConnectionPool limits the connections of a net/http server, in total and per address. Each costs about 18 KiB, with
// or without a request, and any client that reaches the port can open them.
//
// golang.org/x/net/netutil has a listener that makes additional clients wait. There, a client that holds all places
// without a request would block all others. Here, the oldest connection without a request is closed to make room, and
// then the oldest with an unauthenticated request.
//
// The server has State as its ConnState and accepts connections from a Listener. A ConnectionPool is safe for
// concurrent use.
type ConnectionPool struct {
	ConnectionOptions

	mu    sync.Mutex
	total int
	lists evictable
	// long holds the connections with a long unfinished header.
	long  list.List
	peers map[string]*peer
}

// evictable are the connections that can be closed to make room for others, in eviction order.
type evictable struct {
	// idle connections have no request, longest idle first. unauthenticated ones have a request whose caller has not
	// been authenticated yet.
	idle, unauthenticated list.List
}

// victim returns the connection to close, or nil if all of them serve authenticated requests. An older unauthenticated
// request is closed before a connection that has just arrived or just received its response: otherwise stuck requests
// and a stream of new connections would leave no time for handshakes.
func (w *evictable) victim(now time.Time) *conn {
	quiet, stranger := front(&w.idle), front(&w.unauthenticated)
	if quiet == nil || stranger != nil && now.Sub(quiet.since) < settling && stranger.since.Before(quiet.since) {
		return stranger
	}
	return quiet
}

type peer struct {
	count int
	lists evictable
}

// NewConnectionPool returns a ConnectionPool without connections.
func NewConnectionPool(options ConnectionOptions) *ConnectionPool {
	return &ConnectionPool{ConnectionOptions: options, peers: map[string]*peer{}}
}

// Listener returns a listener whose connections are counted.
func (p *ConnectionPool) Listener(from net.Listener) net.Listener { return &listener{from, p} }

type listener struct {
	net.Listener

	pool *ConnectionPool
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // http.Server checks for the errors of a listener
		}
		if c := l.pool.admit(accepted); c != nil {
			return c, nil
		}
	}
}

type conn struct {
	net.Conn

	pool *ConnectionPool
	peer string
	// busy is true while a request is being served, once its header has been read completely.
	busy atomic.Bool

	// The pool's lock guards the following fields.

	released bool
	// since is when the connection arrived, its request started, or its last response was sent. read is the number of
	// bytes read since then.
	since time.Time
	read  int
	// inPool, inPeer and inLong are its places in the lists, or nil if it is not in the list.
	inPool, inPeer, inLong *list.Element
}

type connKey struct{}

// Context is the server's ConnContext: it lets Authenticator find a request's connection.
func (p *ConnectionPool) Context(ctx context.Context, of net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, unwrap(of))
}

// Authenticator returns a function that protects a request's connection from eviction until the response.
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

// admit counts a new connection, or closes it and returns nil if all others serve authenticated requests.
func (p *ConnectionPool) admit(accepted net.Conn) *conn {
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
		_ = one.Conn.Close() // its client has disconnected, or will notice
	}
	if bound != "" && p.Reached != nil {
		p.Reached(bound, c.peer)
	}
	if !room {
		return nil
	}
	return c
}

// evict removes connections from the pool to make room for a new one, and returns the ones to close. bound is the limit
// that was reached; it is empty if they were only idle for too long.
func (p *ConnectionPool) evict(c *conn) (closing []*conn, bound ConnectionBound, room bool) {
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

// idle returns how long a connection may currently be idle. This time decreases as connections are used up. While half
// of the places are free, the server's own IdleTimeout applies.
func (p *ConnectionPool) idle() time.Duration {
	const server = time.Duration(1<<63 - 1)
	free := p.Total - p.total
	if p.Total <= 0 || 2*free >= p.Total {
		return server
	}
	return max(p.Idle*time.Duration(2*free)/time.Duration(p.Total), shortestIdle)
}

func (p *ConnectionPool) add(c *conn) {
	p.total++
	if p.peers[c.peer] == nil {
		p.peers[c.peer] = &peer{}
	}
	p.peers[c.peer].count++
	p.markIdle(c)
}

func (p *ConnectionPool) release(c *conn) {
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

func (p *ConnectionPool) markIdle(c *conn) {
	c.inPool, c.inPeer = p.lists.idle.PushBack(c), p.peers[c.peer].lists.idle.PushBack(c)
}

func (p *ConnectionPool) markUnauthenticated(c *conn) {
	c.inPool, c.inPeer = p.lists.unauthenticated.PushBack(c), p.peers[c.peer].lists.unauthenticated.PushBack(c)
}

func (p *ConnectionPool) unlist(c *conn) {
	if c.inPool != nil {
		own := &p.peers[c.peer].lists
		// Remove ignores an element of another list.
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

func front(of *list.List) *conn {
	if of.Front() == nil {
		return nil
	}
	return of.Front().Value.(*conn) //nolint:forcetypeassert // the lists have no other type
}

// State tracks a connection's state; it is the server's ConnState. A connection is active once a request's header has
// been read completely, and idle after the response.
func (p *ConnectionPool) State(of net.Conn, state http.ConnState) {
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

// unwrap finds the counted connection below wrappers, or returns nil if there is none.
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

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.busy.Load() {
		c.pool.addHeaderBytes(c, n)
	}
	return n, err //nolint:wrapcheck // net/http checks for the errors of a connection
}

// addHeaderBytes adds n bytes to a header, and closes the oldest connection if too many are long.
func (p *ConnectionPool) addHeaderBytes(c *conn, n int) {
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

func (c *conn) Close() error {
	c.pool.mu.Lock()
	c.pool.release(c)
	c.pool.mu.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // as in Read
}

func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // as in Read
	}
	return nil
}
