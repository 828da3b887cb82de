// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// handshakeLogEvery and handshakeLogBurst limit the logged handshake failures, which any client can cause.
	handshakeLogEvery = 10 * time.Second
	handshakeLogBurst = 5
)

// handshakeListener terminates TLS and logs failed handshakes, which net/http does only for connections of type
// *tls.Conn.
type handshakeListener struct {
	net.Listener

	config *tls.Config
	clock  clock.PassiveClock
	log    *slog.Logger
	limit  *rate.Limiter
	// suppressed counts the failures that were not logged since the last one that was.
	suppressed atomic.Int64
}

func (l *handshakeListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Server checks the errors of a listener
	}
	return &handshakeConn{Conn: tls.Server(conn, l.config), from: l}, nil
}

// handshakeConn is a connection that runs the handshake on its first read.
type handshakeConn struct {
	*tls.Conn

	from     *handshakeListener
	reported atomic.Bool
}

func (c *handshakeConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !c.ConnectionState().HandshakeComplete && !c.reported.Swap(true) {
		c.from.failed(c.RemoteAddr(), err)
	}
	return n, err //nolint:wrapcheck // net/http checks the errors of a connection
}

// failed logs a failed handshake: at debug level if the client did not send any data, like a load balancer's probe.
func (l *handshakeListener) failed(client net.Addr, err error) {
	level := slog.LevelWarn
	var silent net.Error
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.As(err, &silent) && silent.Timeout() {
		level = slog.LevelDebug
	}
	ctx := context.Background()
	if !l.log.Enabled(ctx, level) {
		return
	}
	if !l.limit.AllowN(l.clock.Now(), 1) {
		l.suppressed.Add(1)
		return
	}
	l.log.Log(ctx, level, "A TLS handshake failed", "remote", client.String(), "error", err, "notLogged", l.suppressed.Swap(0))
}
