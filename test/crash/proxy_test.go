// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"net"
	"sync"
	"time"
)

// cut is the direction of the data that a proxy drops.
type cut int

const (
	// open forwards everything.
	open cut = iota
	// requestsLost drops the client's data.
	requestsLost
	// answersLost drops the server's data: requests take effect, but their responses are lost.
	answersLost
)

// proxy forwards TCP connections between the manager and a server. It can drop data in either direction while both ends
// believe that the connection is open.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	cut   cut
	conns map[net.Conn]struct{}
}

func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	go p.serve()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// set cuts or restores the proxy. Restoring closes the connections that were open during a cut, as if their packets
// remained lost.
func (p *proxy) set(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != open && c == open {
		for conn := range p.conns {
			_ = conn.Close()
		}
		clear(p.conns)
	}
	p.cut = c
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", p.target, time.Second)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		go p.pass(server, client, requestsLost)
		go p.pass(client, server, answersLost)
	}
}

// pass copies data in one direction, and drops it while that direction is cut.
func (p *proxy) pass(to, from net.Conn, lostBy cut) {
	defer p.forget(to, from)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.isCut(lostBy) {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) isCut(c cut) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut == c
}

func (p *proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.conns, c)
	}
}
