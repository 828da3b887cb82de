// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"io"
	"net"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/hack/local/ports"
)

// door is a proxy between the API server and the webhook, with a stable address.
type door struct {
	address, target string

	mu       sync.Mutex
	listener net.Listener
	// holds makes the proxy accept connections without forwarding data.
	holds bool
	open  map[net.Conn]struct{}
}

// newDoor returns an open door to the target.
func newDoor(target string) *door {
	d := &door{address: ports.ForTest(GinkgoT()), target: target, open: map[net.Conn]struct{}{}}
	d.unlock()
	DeferCleanup(d.lock)
	return d
}

// unlock opens the listener.
func (d *door) unlock() {
	GinkgoHelper()
	listener, err := net.Listen("tcp", d.address)
	Expect(err).NotTo(HaveOccurred())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listener = listener
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go d.pass(conn)
		}
	}()
}

// lock closes the listener, so new connections are refused.
func (d *door) lock() {
	d.mu.Lock()
	_ = d.listener.Close() // it may already be closed
	d.mu.Unlock()
	d.cut()
}

// stall closes open connections and accepts new ones without forwarding any data; false resumes forwarding.
func (d *door) stall(on bool) {
	d.mu.Lock()
	d.holds = on
	d.mu.Unlock()
	d.cut()
}

// cut closes open connections, which the API server would reuse for later requests.
func (d *door) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for conn := range d.open {
		_ = conn.Close() // may already be closed
	}
}

// pass forwards a connection in both directions.
func (d *door) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	d.mu.Lock()
	holds := d.holds
	d.open[client] = struct{}{}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.open, client)
		d.mu.Unlock()
	}()
	if holds {
		_, _ = io.Copy(io.Discard, client)
		return
	}
	server, err := net.Dial("tcp", d.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}
