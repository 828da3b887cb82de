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

// plainError is the text between the status and the message when net/http itself returns an error, before a handler
// runs (net/http, server.go, errorHeaders). No handler of this server responds with plain text.
var plainError = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// envelopes converts net/http's own errors (an invalid request line, header or length) to the usual error envelope.
// net/http writes each of them directly to the connection with a single call. An unknown Expect header still results in
// a 417 without a body.
type envelopes struct{ net.Listener }

func (l envelopes) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Server checks the errors of a listener
	}
	return enveloped{conn}, nil
}

type enveloped struct{ net.Conn }

// Write passes on everything except those errors. It checks only the first line.
func (c enveloped) Write(b []byte) (int, error) {
	end := bytes.IndexByte(b, '\r')
	if end < 0 || !bytes.HasPrefix(b[end:], plainError) || !bytes.HasPrefix(b, []byte("HTTP/1.1 ")) {
		return c.Conn.Write(b) //nolint:wrapcheck // net/http checks the errors of a connection
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

func (c enveloped) NetConn() net.Conn { return c.Conn }

// CloseWrite closes the write side while the server continues to read for a while, as net/http does for connections
// that support it. Otherwise data that the client is still sending would reset the connection, and the client would not
// receive the error.
func (c enveloped) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // as above
	}
	return nil
}
