// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"net"
	"strconv"
	"testing"
)

func TestFree(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		address := ForTest(t)
		if seen[address] {
			t.Errorf("%s was returned twice", address)
		}
		seen[address] = true
		_, text, _ := net.SplitHostPort(address)
		if port, err := strconv.Atoi(text); err != nil || port < first || port >= first+count {
			t.Errorf("%s is in the range of outgoing connections", address)
		}
	}
}

func TestFromSkipsUsedPorts(t *testing.T) {
	listener, err := net.Listen("tcp", ForTest(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	taken := listener.Addr().(*net.TCPAddr).Port
	used := map[int]bool{first + (taken-first+1)%count: true}
	port, _, err := From(taken, used)
	if err != nil || port == taken || port == first+(taken-first+1)%count {
		t.Errorf("got %d, %v after the occupied port %d and a reserved one", port, err, taken)
	}
	if !used[port] {
		t.Error("the returned port is not marked as used")
	}
}
