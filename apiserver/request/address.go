// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"net"
	"net/http"
	"net/netip"
)

// Address is what one visitor is counted by: an address, or the network of 64 bits that one
// has in version 6. Behind a proxy all visitors have one.
func Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	address = address.Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	network, _ := address.Prefix(64) // it has 128 bits
	return network.String()
}
