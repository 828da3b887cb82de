// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"io"
	"net"
	"testing"
)

// TestEnvelopedCloseWrite closes a connection's write side. The client reads to the end, and data that it still sends
// arrives.
func TestEnvelopedCloseWrite(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // the test is over
	served, err := envelopes{listener}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close() //nolint:errcheck // the test is over
	half, ok := served.(interface{ CloseWrite() error })
	if !ok {
		t.Fatal("net/http would close the whole connection, and a client that still sends could not read why")
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the client read %d bytes, %v; want the end", n, err)
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := served.Read(make([]byte, 1)); n != 1 {
		t.Errorf("read %d bytes, %v, of what the client sent", n, err)
	}
}
