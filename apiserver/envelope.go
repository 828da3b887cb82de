// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
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
const plainError = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// longestPlainError is more than any such answer takes, in bytes.
const longestPlainError = 1 << 10

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

func (c enveloped) Write(b []byte) (int, error) {
	head, text, found := strings.Cut(string(b[:min(len(b), longestPlainError)]), plainError)
	status, ok := strings.CutPrefix(head, "HTTP/1.1 ")
	if !found || !ok || strings.Contains(head, "\r\n") {
		return c.Conn.Write(b) //nolint:wrapcheck // net/http knows the errors of a connection
	}
	code, _, _ := strings.Cut(status, " ")
	body := wire.AppendError(nil, bridge.CodeValidation, "the request cannot be read: "+strings.TrimPrefix(text, code+" "))
	_, err := fmt.Fprintf(c.Conn, "%s\r\nContent-Type: application/json; charset=utf-8\r\n%s: %s\r\nX-Content-Type-Options: nosniff\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s", head, requestIDHeader, rand.Text(), len(body), body)
	if err != nil {
		return 0, err //nolint:wrapcheck // as above
	}
	return len(b), nil
}
