// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"net/netip"
	"net/url"
)

// PictureURL returns the address of an account's picture if it is safe to show, and "" otherwise. The platform's value
// is untrusted: it may refer to a script, a local file, or a page inside a private network. Pictures must use HTTPS;
// plain HTTP is allowed only on loopback addresses, for simulated platforms.
func PictureURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return ""
	}
	switch u.Scheme {
	case "https":
		return address
	case "http":
		if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() == "localhost" || err == nil && ip.IsLoopback() {
			return address
		}
	}
	return ""
}
