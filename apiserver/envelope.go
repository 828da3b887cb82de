// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"strings"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/wire"
)

// plainError is what net/http writes between the status and the text when it refuses
// a request before there is a handler for it (net/http, server.go, errorHeaders). No
// handler of this server answers in plain text.
var plainError = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// envelopes gives the errors of net/http itself (a request line, a header or a length
// that cannot be read) the shape that every other error has. The server writes these
// straight to the connection, in one piece. An expectation that it does not know stays
// 417 without a body.
type envelopes struct{ net.Listener }

func (l envelopes) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Server knows the errors of a listener
	}
	return enveloped{conn}, nil
}

type enveloped struct{ net.Conn }

// Write stands in the way of every answer: what is none of those errors is passed on
// after a look at its first line.
func (c enveloped) Write(b []byte) (int, error) {
	end := bytes.IndexByte(b, '\r')
	if end < 0 || !bytes.HasPrefix(b[end:], plainError) || !bytes.HasPrefix(b, []byte("HTTP/1.1 ")) {
		return c.Conn.Write(b) //nolint:wrapcheck // net/http knows the errors of a connection
	}
	head, text := b[:end], string(b[end+len(plainError):])
	code, _, _ := strings.Cut(string(head[len("HTTP/1.1 "):]), " ")
	body := wire.AppendError(nil, bridge.CodeValidation, "the request cannot be read: "+strings.TrimPrefix(text, code+" "))
	_, err := fmt.Fprintf(c.Conn, "%s\r\nContent-Type: application/json; charset=utf-8\r\n%s: %s\r\nX-Content-Type-Options: nosniff\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s", head, requestIDHeader, rand.Text(), len(body), body)
	if err != nil {
		return 0, err //nolint:wrapcheck // as above
	}
	return len(b), nil
}

// NetConn is the connection beneath.
func (c enveloped) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the answer and goes on reading for a while, as net/http does with a
// connection that can: what the client still sends would reset the connection, and
// the client would not read why it was refused.
func (c enveloped) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // as above
	}
	return nil
}
