// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/herald-social/herald/apiserver/request"
)

// FuzzClient verifies that no client can choose its rate limit key by X-Forwarded-For: the key is the peer's address
// or, behind a proxy, the address that the proxy saw. first and second are lines of the header.
func FuzzClient(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""},
		{"203.0.113.7", ""},
		{"192.0.2.1, 10.9.9.9", "10.8.8.8"},
		{"192.0.2.1, unknown, 10.2.2.2", ""},
		{"[2001:db8::1]:9000", "fd00::2"},
		{"::ffff:10.0.0.1, ::ffff:192.0.2.1", "fe80::1%eth0"},
		{",,,", "192.0.2.1:80:90, ]["},
		{"10.0.0.1\t,\u00a010.0.0.2", "0x0a.0.0.1, 010.0.0.1"},
	} {
		f.Add(seed[0], seed[1])
	}
	const stranger, proxy, seen, farther = "198.51.100.9", "10.0.0.1", "203.0.113.7", "10.7.7.7"
	proxies := request.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	client := func(from string, lines ...string) netip.Addr {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = from + ":4711"
		r.Header["X-Forwarded-For"] = lines
		return proxies.Client(r)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		if got := client(stranger, first, second).String(); got != stranger {
			t.Errorf("a stranger that says %q, %q is counted as %s", first, second, got)
		}
		for _, lines := range [][]string{
			{first, second + ", " + seen}, {first, second, seen}, {first, second + "," + seen + ", " + farther}, {first, second + ", " + seen, farther},
		} {
			if got := client(proxy, lines...).String(); got != seen {
				t.Errorf("a proxy saw %s, and %q is counted as %s", seen, lines, got)
			}
		}
		got := client(proxy, first, second)
		switch {
		case !got.IsValid() || got.Zone() != "" || got.Is4In6():
			t.Errorf("%q, %q is counted as %q: one visitor could have several", first, second, got)
		case got.String() != proxy && !stands(got, first+","+second):
			t.Errorf("%q, %q is counted as %s, which nobody said", first, second, got)
		}
	})
}

// stands reports whether an item of a list is the address, with a lenient parser of addresses.
func stands(address netip.Addr, list string) bool {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.Trim(strings.TrimSpace(item), "[]")
		if with, err := netip.ParseAddrPort(strings.TrimSpace(item)); err == nil && with.Addr().Unmap().WithZone("") == address {
			return true
		}
		host, _, _ := strings.Cut(item, "]")
		if said, err := netip.ParseAddr(host); err == nil && said.Unmap().WithZone("") == address {
			return true
		}
	}
	return false
}
