// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxURLLength is the maximum length of a recognized URL with its protocol, in UTF-16 units (MAX_URL_LENGTH).
	maxURLLength = 4096
	// defaultProtocol is assumed for a URL without a protocol.
	defaultProtocol = "https://"
	// maxTCoSlug is the maximum path length of one of X's own short URLs (MAX_TCO_SLUG_LENGTH).
	maxTCoSlug = 40
)

// Range is a part of text, as byte offsets: text[Start:End].
type Range struct {
	Start, End int
}

// URLs returns the parts of the text that X turns into links, in order and without overlaps.
func URLs(text string) []Range {
	all := findURLs(text, nil)
	ranges := make([]Range, 0, len(all))
	for _, u := range all {
		if last := len(ranges) - 1; last >= 0 && u.Start < ranges[last].End {
			continue // twitter-text finds a part of a domain twice (see addBare)
		}
		ranges = append(ranges, u.Range)
	}
	return ranges
}

// found is a URL and its share of the count.
type found struct {
	Range
	// covered is the number of bytes from Start that the URL's weight accounts for. It is the length of the range,
	// unless twitter-text's own count differs from its range (see addBare).
	covered int
	// remainder is additional weight if covered ends within the UTF-16 form of a character.
	remainder int
}

// candidate is a part of the text that has the form of a URL.
type candidate struct {
	// start is the start of the protocol or, without one, of the domain; domain and domainEnd delimit the domain.
	start, domain, domainEnd int
	// split reports whether the domain starts with the second half of a character above U+FFFF. See scanner.bareStart.
	split bool
	// path and pathEnd delimit the path; they are equal if there is none.
	path, pathEnd int
	// end is the end of the query, or of the last part before it.
	end int
}

// scanner finds URLs from left to right.
//
// It reproduces the matching order of twitter-text's regular expression for a URL. A backtracking matcher would take
// quadratic time or worse on hostile text. The scanner visits each dot once: the first dot of a URL follows the first
// label of its domain, and the text after that dot mostly decides whether there is a URL.
type scanner struct {
	text string
	// from is the end of the last candidate. The character there can only precede the next URL.
	from int
	// chain is the last scanned chain of labels.
	chain chain
}

// findURLs appends to urls the parts of the text that X turns into links, in order. With a protocol, the domain may be
// in any script. Without one, a URL includes only the ASCII or accented Latin part of a domain, and includes a query
// only after a path. Email addresses, and text right after a letter, '@', '#' or '$', are not URLs.
//
// The text is not normalized: the offsets refer to the text as passed.
func findURLs(text string, urls []found) []found {
	s := scanner{text: text, chain: chain{last: -1}}
	for at := 0; ; {
		dot := strings.IndexByte(text[at:], '.')
		if dot < 0 {
			return urls
		}
		at += dot
		c, ok := s.candidateAt(at)
		if !ok {
			at++
			continue
		}
		if c.domain > c.start {
			urls = s.addWithProtocol(urls, c)
		} else {
			urls = s.addBare(urls, c)
		}
		// A candidate is skipped even if it was rejected.
		s.from, at = c.end, c.end
	}
}

// addWithProtocol appends a candidate that starts with http:// or https://.
func (s *scanner) addWithProtocol(urls []found, c candidate) []found {
	if !s.acceptable(c) {
		return urls
	}
	end := c.end
	if own := tco.FindStringSubmatchIndex(s.text[c.start:c.end]); own != nil {
		if slug := own[3] - own[2]; slug > maxTCoSlug {
			return urls
		}
		end = c.start + own[1]
	}
	return append(urls, found{Range: Range{c.start, end}, covered: end - c.start})
}

// addBare appends the URLs in a candidate without a protocol: each part of its domain that is an ASCII or accented
// Latin domain, so "日本語example.com" yields example.com. The last one includes the path and a query after the path.
//
// If another script follows such a part within the domain, twitter-text's range extends from the part to the end of the
// path, but its count only includes as many characters as the part and the path have; covered reproduces this. The
// search for the part's text, which finds an earlier occurrence first, is reproduced as well.
func (s *scanner) addBare(urls []found, c candidate) []found {
	if !s.acceptable(c) || c.start > 0 && strings.IndexByte("-_./", s.text[c.start-1]) >= 0 && !c.split {
		return urls
	}
	domain := s.text[c.domain:c.domainEnd]
	first, searched := len(urls), 0
	for start, end := asciiDomain(domain, 0); end >= 0; start, end = asciiDomain(domain, end) {
		searched += strings.Index(domain[searched:], domain[start:end])
		u := Range{c.domain + searched, c.domain + searched + end - start}
		searched += end - start
		urls = append(urls, found{Range: u, covered: end - start})
	}
	if len(urls) == first || c.path == c.pathEnd {
		return urls
	}
	last := &urls[len(urls)-1]
	units := utf16Length(s.text[last.Start:last.End]) + utf16Length(s.text[c.domainEnd:c.end])
	last.covered, last.remainder = cover(s.text[last.Start:], units)
	last.End = c.end
	return urls
}

// acceptable checks the length of the URL and of the domain's labels, which are not limited by the URL's form.
func (s *scanner) acceptable(c candidate) bool {
	protocol := c.domain - c.start
	if protocol == 0 {
		protocol = len(defaultProtocol)
	}
	if url := s.text[c.start:c.end]; len(url) > maxURLLength-protocol {
		length := utf16Length(url)
		if c.split {
			length--
		}
		if length > maxURLLength-protocol {
			return false
		}
	}
	domain := s.text[c.domain:c.domainEnd]
	if strings.HasPrefix(domain, punycodePrefix) {
		if _, end := asciiDomain(domain, 0); end < 0 {
			return false // Punycode and another script in one domain
		}
	}
	split := c.split
	for label := range strings.SplitSeq(domain, ".") {
		if !encodable(label, split) {
			return false
		}
		split = false
	}
	return true
}

// utf16Length returns the length of the text in UTF-16 units, the unit of twitter-text.
func utf16Length(text string) int {
	units := 0
	for _, r := range text {
		units += utf16Width(r)
	}
	return units
}

func utf16Width(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// cover returns the number of bytes of the text in that many UTF-16 units. If they end between the two units of a
// character, the character is covered, and the weight of its second unit is returned as remainder.
func cover(text string, units int) (covered, remainder int) {
	for covered < len(text) && units > 0 {
		r, width := utf8.DecodeRuneInString(text[covered:])
		units -= utf16Width(r)
		covered += width
	}
	if units < 0 {
		return covered, heavyWeight
	}
	return covered, 0
}
