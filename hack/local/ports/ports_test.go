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
			t.Errorf("%s was given twice, although nothing listens on it yet", address)
		}
		seen[address] = true
		_, text, _ := net.SplitHostPort(address)
		if port, err := strconv.Atoi(text); err != nil || port < first || port >= first+count {
			t.Errorf("%s is among the ports of outgoing connections", address)
		}
	}
}

func TestFromPassesOver(t *testing.T) {
	listener, err := net.Listen("tcp", ForTest(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	taken := listener.Addr().(*net.TCPAddr).Port
	used := map[int]bool{first + (taken-first+1)%count: true}
	port, _, err := From(taken, used)
	if err != nil || port == taken || port == first+(taken-first+1)%count {
		t.Errorf("%d, %v after %d, which is taken, and the next, which is used", port, err, taken)
	}
	if !used[port] {
		t.Error("the port that was found is not marked as used")
	}
}
