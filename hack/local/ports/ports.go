// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ports finds free loopback ports for servers that can listen on any address.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports are below the operating systems' ephemeral ranges (Linux: 32768 and up, macOS: 49152 and up). Another
// program could take a port in such a range before its process listens or while it restarts: any client, even one that
// dials this very port and connects to itself.
const (
	first = 20000
	count = 10000
)

// Address returns the loopback address with the given port.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// IsFree reports whether a server could listen on the loopback port now.
func IsFree(port int) bool {
	listener, err := net.Listen("tcp", Address(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// Start returns the first port to try. Callers pass different numbers, so they rarely choose the same ports.
func Start(number uint32) int { return first + int(number%count) }

// From returns the first free and unused port at or after start, wrapping around once, and the port at which to
// continue. It marks the port as used.
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

// given are the ports that Free has already returned.
var (
	mu    sync.Mutex
	given = map[int]bool{}
)

// Free returns a loopback address that nothing listens on. A port appears to be free until its server listens, so Free
// never returns the same one twice in a process. Different processes start at different ports.
func Free() (address string, err error) {
	mu.Lock()
	defer mu.Unlock()
	port, _, err := From(Start(rand.Uint32()), given) //nolint:gosec // a port is not secret
	if err != nil {
		return "", err
	}
	return Address(port), nil
}

// TB is the part of a test that ForTest uses.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// ForTest is Free for tests. The test fails if there is no free port.
func ForTest(t TB) string {
	t.Helper()
	address, err := Free()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return address
}
