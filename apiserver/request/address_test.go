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

func TestClient(t *testing.T) {
	t.Parallel()
	inFront := request.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, tc := range map[string]struct {
		reason    string
		proxies   request.Proxies
		from      string
		forwarded []string
		want      string
	}{
		"no proxy":       {"the connection has the address", nil, "203.0.113.7:4711", nil, "203.0.113.7"},
		"untrusted":      {"a client's own claim is ignored", inFront, "203.0.113.7:4711", []string{"192.0.2.1"}, "203.0.113.7"},
		"default":        {"no proxy is trusted by default", nil, "10.0.0.1:4711", []string{"192.0.2.1"}, "10.0.0.1"},
		"one":            {"the proxy reports its client", inFront, "10.0.0.1:4711", []string{"203.0.113.7"}, "203.0.113.7"},
		"two":            {"trusted proxies are skipped", inFront, "10.0.0.1:4711", []string{"203.0.113.7, 10.9.9.9"}, "203.0.113.7"},
		"lines":          {"each proxy may add its own header line", inFront, "10.0.0.1:4711", []string{"203.0.113.7", "10.9.9.9"}, "203.0.113.7"},
		"spoofed":        {"the client's own entry precedes the proxy's", inFront, "10.0.0.1:4711", []string{"192.0.2.1, 203.0.113.7"}, "203.0.113.7"},
		"spoofed proxy":  {"a trusted address in the client's entry has no effect", inFront, "10.0.0.1:4711", []string{"192.0.2.1, 10.0.0.1, 203.0.113.7, 10.2.2.2"}, "203.0.113.7"},
		"not an address": {"entries before it cannot be trusted", inFront, "10.0.0.1:4711", []string{"192.0.2.1, unknown, 10.2.2.2"}, "10.2.2.2"},
		"nothing":        {"the proxy does not report a client", inFront, "10.0.0.1:4711", nil, "10.0.0.1"},
		"empty":          {"an empty header contains no client", inFront, "10.0.0.1:4711", []string{"", " , "}, "10.0.0.1"},
		"with a port":    {"some proxies add the port", inFront, "10.0.0.1:4711", []string{"203.0.113.7:9000"}, "203.0.113.7"},
		"version 6":      {"brackets and port are optional", inFront, "[fd00::1]:4711", []string{"[2001:db8::1]:9000"}, "2001:db8::1"},
		"mapped":         {"a dual-stack socket maps addresses", inFront, "[::ffff:10.0.0.1]:4711", []string{"[2001:db8::1]"}, "2001:db8::1"},
		"no address":     {"another kind of socket", inFront, "@", []string{"203.0.113.7"}, "invalid IP"},
		"all proxies":    {"the most distant address is the client's", inFront, "10.0.0.1:4711", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		"long":           {"entries before the client's address are not parsed", inFront, "10.0.0.1:1", []string{strings.Repeat("1.2.3.4,", 4000) + "203.0.113.7"}, "203.0.113.7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
			r.RemoteAddr = tc.from
			r.Header["X-Forwarded-For"] = tc.forwarded
			r.Header.Set("Forwarded", "for=192.0.2.99")
			if got := tc.proxies.Client(r).String(); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, client, from, want string }{
		"version 4": {"an address", "", "203.0.113.7:4711", "203.0.113.7"},
		"version 6": {"a client has a /64 network", "", "[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1:2::/64"},
		"mapped":    {"a mapped address is an IPv4 address", "", "[::ffff:203.0.113.7]:4711", "203.0.113.7"},
		"known":     {"the address from the proxy header counts", "2001:db8::1", "10.0.0.1:1", "2001:db8::/64"},
		"neither":   {"other addresses count as one client", "", "pipe", "pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info := &request.Info{}
			if tc.client != "" {
				info.Client = netip.MustParseAddr(tc.client)
			}
			r := httptest.NewRequestWithContext(request.With(t.Context(), info), http.MethodGet, "/", http.NoBody)
			r.RemoteAddr = tc.from
			if got := request.Address(r); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

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
			t.Errorf("an untrusted client with %q, %q counts as %s", first, second, got)
		}
		for _, lines := range [][]string{
			{first, second + ", " + seen}, {first, second, seen}, {first, second + "," + seen + ", " + farther}, {first, second + ", " + seen, farther},
		} {
			if got := client(proxy, lines...).String(); got != seen {
				t.Errorf("a proxy forwarded %s, but %q counts as %s", seen, lines, got)
			}
		}
		got := client(proxy, first, second)
		switch {
		case !got.IsValid() || got.Zone() != "" || got.Is4In6():
			t.Errorf("%q, %q counts as %q: one client could have several addresses", first, second, got)
		case got.String() != proxy && !stands(got, first+","+second):
			t.Errorf("%q, %q counts as %s, which is in neither header", first, second, got)
		}
	})
}

// stands reports whether an item of a list is the address, according to a lenient parser.
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
