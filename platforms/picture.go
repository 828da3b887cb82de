// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"net/netip"
	"net/url"
)

// PictureURL returns what a platform calls the address of an account's picture if it may be
// shown to people, else "". It may be anything: a script, a file of the reader's, a page inside
// of a company. Pictures of platforms come by HTTPS; plain HTTP is taken from the reader's own
// machine alone, where simulated platforms run.
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
