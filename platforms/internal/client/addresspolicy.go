// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/herald-social/herald/internal/text"
)

// AddressPolicy says which addresses are called that a platform names in its answers. Such an
// address comes back from a Secret, too, which others may have written; each call of
// it is checked.
type AddressPolicy struct {
	// Hosts are the platform's, as in platforms.Hosts: they are called by https on its
	// usual port, and at public addresses alone.
	Hosts []string
	// Configured are addresses that the configuration names; empty ones do not count.
	// What has the scheme, host and port of one is called wherever it leads: it may be
	// a sandbox, or a gateway of the company.
	Configured []string
}

// Why an address is not called.
var (
	errNoURL   = errors.New("the address that the platform handed out is not a URL")
	errForeign = errors.New("the address that the platform handed out is not of its hosts")
)

// longestAddress is how long an address may be, in bytes: it is kept in a Secret, which
// holds those of all targets. Real ones have some hundreds, and TikTok allows 256.
const longestAddress = 8 << 10

// longestHost is how much of a foreign host's name is logged, in bytes.
const longestHost = 64

// Check returns an error for an address that would not be called. The error does not
// tell more of it than the host.
func (n *AddressPolicy) Check(address string) error {
	_, err := n.resolve(address)
	return err
}

// resolvedAddress is an address that may be called.
type resolvedAddress struct {
	address string
	// named says that the platform named its host, and not the configuration.
	named bool
}

// resolve returns how to call an address that a platform named.
func (n *AddressPolicy) resolve(address string) (resolvedAddress, error) {
	if len(address) > longestAddress {
		return resolvedAddress{}, errNoURL
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return resolvedAddress{}, errNoURL
	}
	for _, configured := range n.Configured {
		if c, err := url.Parse(configured); err == nil && c.Host != "" && origin(c) == origin(u) {
			return resolvedAddress{address: address}, nil
		}
	}
	if u.Scheme == "https" && (u.Port() == "" || u.Port() == "443") {
		for _, pattern := range n.Hosts {
			if matches(pattern, strings.ToLower(u.Hostname())) {
				return resolvedAddress{address: address, named: true}, nil
			}
		}
	}
	return resolvedAddress{}, fmt.Errorf("%w: %s://%s", errForeign, text.TruncateBytes(u.Scheme, longestHost), text.TruncateBytes(u.Host, longestHost))
}

// matches reports whether a host is meant by a pattern: a name, or "*." and the end of
// names.
func matches(pattern, host string) bool {
	if end, ok := strings.CutPrefix(pattern, "*"); ok {
		return len(host) > len(end) && strings.HasSuffix(host, end)
	}
	return host == pattern
}

// origin is the scheme, host and port of an address.
func origin(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "http":
		port = "80"
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// HostsOf returns the hosts of addresses, each once and in their order.
func HostsOf(addresses ...string) []string {
	var hosts []string
	seen := map[string]bool{}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil && !seen[u.Hostname()] {
			seen[u.Hostname()] = true
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}
