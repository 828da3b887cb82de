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

// networkBits is how much of an address of version 6 a visitor is counted by: one has at
// least the 64 bits behind it.
const networkBits = 64

// Address is what one visitor is counted by: an address, or the network of 64 bits that one
// has in version 6. Behind a proxy that is not trusted all visitors have one.
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

// visitor is what the requests and the connections of one visitor are counted by.
func visitor(address netip.Addr) string {
	if address.Is4() {
		return address.String()
	}
	network, _ := address.Prefix(networkBits) // it has 128 bits
	return network.String()
}

// Peer is what the connections from an address are counted by; "" for a proxy, which has those of many visitors.
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

// Remote is where a request comes from, for the log: the address of the client that proxies
// in front of this server speak for, or else that of the connection with its port.
func Remote(r *http.Request) string {
	if client := From(r.Context()).Client; client.IsValid() && client != parse(r.RemoteAddr) {
		return client.String()
	}
	return r.RemoteAddr
}

// Proxies are the networks of the proxies that stand in front of this server. What they say
// of their clients is believed, and what anybody else says is not.
type Proxies []netip.Prefix

// Client returns the address of who sent a request: that of the connection, or, if a proxy
// made that, the last address of X-Forwarded-For that is not a proxy's. Each proxy adds the
// address that it was called from at the end, so that what a client wrote there itself stands
// before its own address and is never read. The field Forwarded (RFC 7239) is not read: a
// proxy that does not know it passes on what its client wrote. The address is zero if the
// connection has none.
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
				return address // what stands before it was said by strangers, for all that is known
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

// parse reads an address, with or without a port.
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
