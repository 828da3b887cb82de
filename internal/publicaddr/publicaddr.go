// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publicaddr distinguishes addresses on the public internet from internal ones: an address from an untrusted
// source must not lead Herald to servers that only Herald can reach.
package publicaddr

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// ErrNotPublic is the error that Check returns. It is only for the log: it must not reveal to the user who chose the
// URL how names resolve inside the cluster.
var ErrNotPublic = errors.New("it leads to an address that is not public")

// closed lists the IPv4 blocks outside the public internet: the IANA special-purpose registry (RFC 6890 and its
// updates), multicast (RFC 5771), reserved blocks (RFC 1112), and the addresses where clouds serve metadata and
// credentials. Most of the latter are link-local or in shared space and closed anyway; Azure's is not.
var closed = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // shared by carriers; Alibaba's metadata
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // Azure's host
	"169.254.0.0/16",   // link-local; metadata of most clouds
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments; Oracle's metadata
	"192.0.2.0/24",     // documentation
	"192.31.196.0/24",  // AS112
	"192.52.193.0/24",  // automatic multicast tunnels
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"192.175.48.0/24",  // AS112
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast
)

// IPv6 is closed except for global unicast, minus special blocks and blocks that embed an IPv4 address for a tunnel.
var (
	global6 = netip.MustParsePrefix("2000::/3")
	closed6 = prefixes(
		"2001::/23",         // protocol assignments, Teredo, ORCHID
		"2001:db8::/32",     // documentation
		"2002::/16",         // 6to4
		"2620:4f:8000::/48", // AS112
		"3fff::/20",         // documentation
	)
	// translated (RFC 6052) is the prefix for IPv4 on hosts without it: the last 32 bits are the effective address.
	translated = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(list ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		parsed = append(parsed, netip.MustParsePrefix(s))
	}
	return parsed
}

// Check returns nil if addr belongs to the public internet. Otherwise it returns an error: for private networks,
// loopback, link-local, shared address space, multicast, documentation, and cloud metadata services.
func Check(addr netip.Addr) error {
	if addr.Zone() != "" {
		return ErrNotPublic
	}
	addr = addr.Unmap()
	if translated.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	in := func(p netip.Prefix) bool { return p.Contains(addr) }
	switch {
	case addr.Is4() && !slices.ContainsFunc(closed, in):
		return nil
	case addr.Is6() && global6.Contains(addr) && !slices.ContainsFunc(closed6, in):
		return nil
	default:
		return ErrNotPublic
	}
}

// Control is for net.Dialer. It checks the address of each connection after its name was resolved, so that neither a
// redirect nor a name that later resolves differently leads to a forbidden address. allow returns an error for
// forbidden addresses.
func Control(allow func(netip.Addr) error) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("cannot read the address %q: %w", address, err)
		}
		return allow(to.Addr())
	}
}
