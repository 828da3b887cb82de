// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"io"
	"net"
	"strings"
	"testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// ownFiles is how many files and sockets the process has besides client connections.
const ownFiles = 100

// connections attacks with connections that stay open. The server rejects headers of 20 KiB; the test's headers are
// shorter and never end.
func connections(t *testing.T, under *target) {
	limits := configv1alpha1.DefaultAPIServer()
	for _, tc := range []struct {
		name, reason    string
		addresses, each int
		say             string
		// most is how many connections may remain.
		most int
	}{
		{"idle", "one address asks once on each, and stays", 1, sized(2000, 15_000), "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", limits.MaxConnectionsPerAddress},
		{"idle from many addresses", "so many that all places are taken", 300, sized(10, 50), "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", limits.MaxConnections},
		{"silent", "nothing is ever sent", 300, sized(10, 50), "", limits.MaxConnections},
		{"unfinished headers", "15 KB of each are there", 300, sized(10, 50), "GET /health HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 15_000), limits.MaxConnections},
		{"unfinished short headers", "just below what counts as long", 300, sized(10, 50), "GET /health HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 4000), limits.MaxConnections},
		{"bodies that never come", "each request is under way", 100, sized(20, 60), "POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\n", limits.MaxConnections},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, _, _ := under.memory(t)
			open := 0
			for i := range tc.addresses * tc.each {
				c, err := stranger(i%tc.addresses).DialContext(t.Context(), "tcp", under.Site)
				if err != nil {
					t.Fatalf("%s: connection %d: %v", tc.reason, i, err)
				}
				t.Cleanup(func() { _ = c.Close() })
				if send(c, tc.say) == nil {
					open++
				}
			}
			under.served(t, 10_000)
			after, peak, files := under.memory(t)
			t.Logf("%s: %d of %d connections were answered or kept at first; resident memory %s -> %s, at most %s; %d files and sockets",
				tc.reason, open, tc.addresses*tc.each, mib(before), mib(after), mib(peak), files)
			if peak > maxResident {
				t.Errorf("the process took %s, more than %s", mib(peak), mib(maxResident))
			}
			if files > tc.most+ownFiles {
				t.Errorf("it has %d files and sockets open, more than the %d connections that it may hold and %d more", files, tc.most, ownFiles)
			}
		})
	}
}

// send writes to a connection, and reads the start of the response if the request is complete.
func send(c net.Conn, say string) error {
	if _, err := io.WriteString(c, say); err != nil {
		return err
	}
	if !strings.HasSuffix(say, "\r\n\r\n") || strings.HasPrefix(say, "POST") {
		return nil
	}
	_, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200")))
	return err
}
