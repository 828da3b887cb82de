// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// networkBits is the prefix length that identifies an IPv6 client: a client controls at least a /64.
const networkBits = 64

// Address returns a client's rate limit key: its IPv4 address or its IPv6 /64. Behind a proxy that is not trusted, all
// clients share one key.
func Address(r *http.Request) string {
	address := From(r.Context()).Client
	if !address.IsValid() {
		address = Proxies(nil).Client(r)
	}
	if !address.IsValid() {
		return r.RemoteAddr
	}
	return visitor(address)
}

// visitor returns an address's rate limit key.
func visitor(address netip.Addr) string {
	if address.Is4() {
		return address.String()
	}
	network, _ := address.Prefix(networkBits) // an IPv6 address has 128 bits
	return network.String()
}

// Peer returns an address's connection limit key, or "" for a proxy, whose connections serve many clients.
func (p Proxies) Peer(from net.Addr) string {
	address := parse(from.String())
	switch {
	case !address.IsValid():
		return from.String()
	case p.include(address):
		return ""
	}
	return visitor(address)
}

// Remote returns where a request came from, for the log: the client's address according to the trusted proxies, or the
// connection's address and port.
func Remote(r *http.Request) string {
	if client := From(r.Context()).Client; client.IsValid() && client != parse(r.RemoteAddr) {
		return client.String()
	}
	return r.RemoteAddr
}

// Proxies are the networks of the trusted proxies in front of this server. Only they may set the client address.
type Proxies []netip.Prefix

// Client returns a request's client address: the connection's address or, for a connection from a proxy, the last
// address in X-Forwarded-For that is not a proxy. Each proxy appends its peer's address, so entries that the client
// sent precede its address and are never read. The Forwarded header (RFC 7239) is ignored: a proxy that does not
// support it passes on the client's value. The address is zero if the connection has none.
func (p Proxies) Client(r *http.Request) netip.Addr {
	address := parse(r.RemoteAddr)
	if !p.include(address) {
		return address
	}
	fields := r.Header.Values("X-Forwarded-For")
	for _, field := range slices.Backward(fields) {
		for rest := field; rest != ""; {
			comma := strings.LastIndexByte(rest, ',')
			said := parse(strings.TrimSpace(rest[comma+1:]))
			if !said.IsValid() {
				return address // entries before it may be forged
			}
			if address = said; !p.include(address) {
				return address
			}
			rest = rest[:max(comma, 0)]
		}
	}
	return address
}

func (p Proxies) include(address netip.Addr) bool {
	for _, network := range p {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

func parse(text string) netip.Addr {
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		with, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}
		}
		address = with.Addr()
	}
	return address.Unmap().WithZone("")
}
