// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// maxSlug is how long the path of a short link on t.co may be, with its slash, for X to take it for one.
const maxSlug = 1 + 40

// maxHost is how far to look for the end of a host name: 253 characters, which may take four bytes each.
const maxHost = 4 * 253

// link is the part text[start:end] that X takes for an address.
type link struct {
	start, end int
	scheme     bool // it begins with http:// or https://
}

// Links returns the addresses in a text as pairs of byte offsets, in order.
func (*Platform) Links(text string) [][2]int {
	var out [][2]int
	for _, l := range findLinks(text) {
		out = append(out, [2]int{l.start, l.end})
	}
	return out
}

// findLinks finds what X would turn into links: addresses with a scheme, and bare domains whose last label is a
// top-level domain.
func findLinks(text string) []link {
	if !strings.Contains(text, ".") {
		return nil
	}
	var out []link
	previous := ' '
	for i := 0; i < len(text); {
		if mayPrecede(previous) {
			if found, ok := linkAt(text, i, previous); ok {
				out = append(out, found)
				i = found.end
				previous, _ = utf8.DecodeLastRuneInString(text[:i])
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		previous = r
		i += size
	}
	return out
}

// mayPrecede says whether an address may begin right behind r.
func mayPrecede(r rune) bool {
	return !isAlnum(r) && !strings.ContainsRune("@＠$#＃", r) && !isInvalid(r)
}

func linkAt(text string, at int, previous rune) (link, bool) {
	found := link{start: at}
	host := at
	if n := schemeLength(text[at:]); n > 0 {
		found.scheme = true
		host += n
	} else if first, _ := utf8.DecodeRuneInString(text[at:]); !isLatin(first) || isLatin(previous) ||
		strings.ContainsRune("-_./", previous) {
		return link{}, false
	}
	end := hostEnd(text, host, found.scheme)
	if end < 0 {
		return link{}, false
	}
	found.end = portEnd(text, end)
	if found.scheme && strings.EqualFold(text[host:found.end], "t.co") {
		slug := shortLinkEnd(text, found.end)
		if slug-found.end > maxSlug {
			return link{}, false
		}
		found.end = queryEnd(text, slug)
		return found, true
	}
	found.end = queryEnd(text, pathEnd(text, found.end))
	return found, true
}

func schemeLength(s string) int {
	for _, scheme := range []string{"https://", "http://"} {
		if len(s) >= len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return len(scheme)
		}
	}
	return 0
}

// hostEnd returns where the longest valid host name that begins at start ends, or -1. Only behind a scheme may it have
// letters that are not Latin.
func hostEnd(text string, start int, international bool) int {
	end := start
	for end < len(text) && end-start < maxHost {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !isHostRune(r, international) {
			break
		}
		end += size
	}
	labels := strings.Split(text[start:end], ".")
	offset := end
	for k := len(labels) - 1; k > 0; k-- {
		offset -= len(labels[k])
		top := topLevelLength(labels[k])
		if top > 0 && endsHere(text[offset+top:]) && validLabels(labels[:k]) && hostFits(text[start:offset+top]) {
			return offset + top
		}
		offset-- // the dot
	}
	return -1
}

func isHostRune(r rune, international bool) bool {
	if r < utf8.RuneSelf || isLatin(r) {
		return isLatin(r) || r == '-' || r == '_' || r == '.'
	}
	return international && r != utf8.RuneError && !unicode.IsPunct(r) && !unicode.IsSpace(r) && !unicode.IsControl(r) &&
		!isInvalid(r)
}

// topLevelLength is how much of a label, from its beginning, is a top-level domain; 0 if none.
func topLevelLength(label string) int {
	n := 0
	punycode := strings.HasPrefix(strings.ToLower(label), "xn--")
	for n < len(label) && (isAlnum(rune(label[n])) || punycode && label[n] == '-') {
		n++
	}
	if n == 0 {
		n = len(label) // no ASCII: an international one, as a whole
	}
	top, err := asciiHost(label[:n])
	if err != nil {
		return 0
	}
	// A name below the domain in question, so that the list's rules for whole top-level domains apply.
	if _, registered := publicsuffix.PublicSuffix("sandbox-probe." + top); !registered {
		return 0
	}
	return n
}

// endsHere says whether a top-level domain may end before rest.
func endsHere(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || !isAlnum(r) && !strings.ContainsRune("@+-", r)
}

// validLabels says whether these labels may stand before a top-level domain; only subdomains may have underscores.
func validLabels(labels []string) bool {
	for i, label := range labels {
		if label == "" || strings.ContainsAny(label[:1]+label[len(label)-1:], "-_") {
			return false
		}
		if i == len(labels)-1 && strings.Contains(label, "_") {
			return false
		}
	}
	return true
}

// hostFits applies the lengths of RFC 1035: 63 bytes a label, 253 a name.
func hostFits(host string) bool {
	ascii, err := asciiHost(host)
	if err != nil || len(ascii) > 253 {
		return false
	}
	for label := range strings.SplitSeq(ascii, ".") {
		if len(label) > 63 {
			return false
		}
	}
	return true
}

// hostProfile allows the underscores that subdomains may have.
var hostProfile = idna.New(idna.MapForLookup(), idna.StrictDomainName(false))

// asciiHost returns a host name as the domain name system knows it.
func asciiHost(host string) (string, error) {
	if isASCII(host) && !strings.Contains(host, "--") {
		return strings.ToLower(host), nil // nothing to translate, as almost always
	}
	return hostProfile.ToASCII(host)
}

// isLatin takes accented letters, too.
func isLatin(r rune) bool { return isAlnum(r) || r >= utf8.RuneSelf && unicode.Is(unicode.Latin, r) }

func isAlnum(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
