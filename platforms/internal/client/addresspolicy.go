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

// AddressPolicy decides which URLs from a platform's responses may be called. Such a URL may also have been read from a
// Secret that others can write, so it is checked before every call.
type AddressPolicy struct {
	// Hosts are the platform's hosts, as in platforms.Hosts. They are called only over HTTPS, on port 443, and at
	// public IP addresses.
	Hosts []string
	// Configured are addresses from the configuration; empty ones are ignored. A URL with the same scheme, host and
	// port may be called even if it resolves to a private IP address, because it may be the sandbox.
	Configured []string
}

// Reasons for rejecting a URL.
var (
	errNoURL   = errors.New("the address that the platform handed out is not a URL")
	errForeign = errors.New("the address that the platform handed out is not of its hosts")
)

// longestAddress is the maximum length of a URL, in bytes. The URLs of all of a post's targets are stored in one
// Secret. Real ones are a few hundred bytes long, and TikTok's are at most 256.
const longestAddress = 8 << 10

// longestHost is the maximum length of a foreign host name in a log line, in bytes.
const longestHost = 64

// Check returns an error for a URL that Do would reject. The error contains only the URL's scheme and host.
func (n *AddressPolicy) Check(address string) error {
	_, err := n.resolve(address)
	return err
}

type resolvedAddress struct {
	address string
	// named reports whether the host came from the platform rather than from the configuration.
	named bool
}

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

// matches reports whether a host matches a pattern: a name, or "*." and a suffix.
func matches(pattern, host string) bool {
	if end, ok := strings.CutPrefix(pattern, "*"); ok {
		return len(host) > len(end) && strings.HasSuffix(host, end)
	}
	return host == pattern
}

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

// HostsOf returns the distinct hosts of the given addresses, in order.
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
