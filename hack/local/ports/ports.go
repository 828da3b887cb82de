// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ports finds loopback ports on which nothing listens, for servers that are told where to listen.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are taken from below the ranges from which systems draw the ports of outgoing connections (Linux: 32768 up,
// macOS: 49152 up). A port from such a range can be lost before its process listens, or while it is being restarted: to any
// client, and even to a client that dials the port itself and is connected to its own end.
const (
	first = 20000
	count = 10000
)

// Address is a loopback address.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// IsFree reports whether a server could listen on the loopback port now.
func IsFree(port int) bool {
	listener, err := net.Listen("tcp", Address(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// Start is the port from which to look, for a number that differs between those who look: so that they rarely want the same
// ports.
func Start(number uint32) int { return first + int(number%count) }

// From returns the first free port at or after start that is not used, going round once, and where to go on. It marks the port
// as used.
func From(start int, used map[int]bool) (port, next int, err error) {
	for i := range count {
		port := first + (start-first+i)%count
		if !used[port] && IsFree(port) {
			used[port] = true
			return port, port + 1, nil
		}
	}
	return 0, 0, fmt.Errorf("no free port between %d and %d on 127.0.0.1", first, first+count-1)
}

// given are the ports that Free has returned.
var (
	mu    sync.Mutex
	given = map[int]bool{}
)

// Free returns a loopback address on which nothing listens now, and never the same one twice in a process: a port that was given
// away is free until its server listens. Of several processes each looks from a place of its own.
func Free() (address string, err error) {
	mu.Lock()
	defer mu.Unlock()
	port, _, err := From(Start(rand.Uint32()), given) //nolint:gosec // a port is no secret
	if err != nil {
		return "", err
	}
	return Address(port), nil
}

// TB is the part of a test that a port is for.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// ForTest is Free, for a test, which fails if there is none.
func ForTest(t TB) string {
	t.Helper()
	address, err := Free()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return address
}
