// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"github.com/herald-social/herald/sandbox/links"
)

// link is a link in text, given by byte offsets.
type link struct {
	start, end int
	scheme     bool // it starts with http:// or https://
}

// linkPattern matches what may be a link: an optional scheme, a host, an optional port, and a path or query.
var linkPattern = regexp.MustCompile(`(?i)(https?://)?((?:[a-z0-9À-ɏ](?:[a-z0-9À-ɏ-]*[a-z0-9À-ɏ])?\.)+[a-z]{2,})((?::[0-9]+)?(?:[/?][a-z0-9À-ɏ!*';:=+,.$/%#\[\]_~@&|()?-]*)?)`)

// findLinks returns the links in text: URLs with a scheme, and bare domains below a registered top-level domain. X's
// own rules (twitter-text) match more: hosts in other scripts, and underscores in subdomains.
func findLinks(text string) []link {
	var out []link
	for _, m := range linkPattern.FindAllStringSubmatchIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:m[0]])
		if m[0] > 0 && (before < utf8.RuneSelf && isWord(before) || strings.ContainsRune("@$#/.-", before)) {
			continue
		}
		end := m[5]
		if host := text[m[4]:end]; !registered(host) {
			// The longest prefix that is a domain counts: example.com in example.com.invalid.
			for host != "" && !registered(host) {
				host = host[:max(0, strings.LastIndexByte(host, '.'))]
			}
			if end = m[4] + len(host); host == "" {
				continue
			}
		} else {
			end += len(links.Trim(text[m[6]:m[7]]))
		}
		if after, _ := utf8.DecodeRuneInString(text[end:]); end == m[5] && (isWord(after) || strings.ContainsRune("@+-", after)) {
			continue
		}
		out = append(out, link{start: m[0], end: end, scheme: m[2] >= 0})
	}
	return out
}

// registered reports whether a host is below an existing top-level domain.
func registered(host string) bool {
	i := strings.LastIndexByte(host, '.')
	if i < 0 {
		return false
	}
	_, listed := publicsuffix.PublicSuffix("sandbox-probe." + strings.ToLower(host[i+1:]))
	return listed
}

func isWord(r rune) bool {
	return r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
