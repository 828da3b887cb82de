// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"net/url"
	"strings"
)

// localPath returns the path and query of an address on this site, and "/" for everything else. Browsers treat //host,
// /\host and their encodings as another site, and drop tabs and line breaks first.
func localPath(wanted string) string {
	const start = "/"
	address, err := url.Parse(wanted)
	if err != nil || address.Scheme != "" || address.Host != "" || address.User != nil || address.Opaque != "" {
		return start
	}
	// A proxy may decode an address that was encoded twice.
	for _, text := range []string{wanted, address.Path, decoded(address.Path)} {
		if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\") || strings.ContainsFunc(text, isControl) {
			return start
		}
	}
	// A redirect back to the sign-in page would loop.
	for _, own := range []string{Path, SignOutPath} {
		if address.Path == own || strings.HasPrefix(address.Path, own+"/") {
			return start
		}
	}
	address.Fragment = ""
	return address.String()
}

// decoded returns the unescaped path, or the path itself if it is not escaped correctly.
func decoded(path string) string {
	if text, err := url.PathUnescape(path); err == nil {
		return text
	}
	return path
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
