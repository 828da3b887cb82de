// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxURLLength is the longest URL, with its protocol, that is recognised, in UTF-16 units (MAX_URL_LENGTH).
	maxURLLength = 4096
	// defaultProtocol is what a URL without a protocol is taken to begin with.
	defaultProtocol = "https://"
	// maxTCoSlug is the longest path of one of X's own short URLs (MAX_TCO_SLUG_LENGTH).
	maxTCoSlug = 40
)

// Range is a part of a text, as byte offsets: text[Start:End].
type Range struct {
	Start, End int
}

// found is a URL together with what it stands for in the count.
type found struct {
	Range
	// covered is the number of bytes from Start on that the URL's weight stands for. It is the length of the range,
	// except where twitter-text's own count differs from its range (see addBare).
	covered int
	// remainder is weight to be added, for a character of which covered ends within the UTF-16 form.
	remainder int
}

// candidate is a part of the text with the form of a URL.
type candidate struct {
	// start is where the protocol, or without one the domain, begins; domain and domainEnd delimit the domain.
	start, domain, domainEnd int
	// split: the domain begins with the second half of a character beyond U+FFFF. See scanner.bareStart.
	split bool
	// path is where the path begins, pathEnd where it ends; the same where there is none.
	path, pathEnd int
	// end is where the query, or what comes last, ends.
	end int
}

// scanner finds URLs from left to right.
//
// The order of trial is that of the regular expression by which twitter-text defines a URL; a backtracking matcher
// takes quadratic time and worse on hostile text. Here each dot is looked at once: a URL's first dot follows the first
// label of its domain, and what comes behind that dot decides nearly alone whether there is a URL.
type scanner struct {
	text string
	// from is where the last candidate ended. The character there can only precede the next URL.
	from int
	// chain is the run of labels that was followed last.
	chain chain
}

// findURLs appends to urls the parts of the text that X turns into links, in the order of the text. With a protocol a URL
// may have a domain in any script; without one, only the part of a domain that is ASCII or accented Latin counts, and a
// query only after a path. E-mail addresses, and what follows a letter, '@', '#' or '$', are no URLs.
//
// The text is taken as it is: the offsets are into it, not into its normal form.
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
		// What had the form of a URL is passed over even where it was refused.
		s.from, at = c.end, c.end
	}
}

// addWithProtocol appends a candidate that begins with http:// or https://.
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

// addBare appends the URLs in a candidate without a protocol: each part of its domain that is a domain in ASCII or
// accented Latin, so that "日本語example.com" gives example.com. The last takes the path and the query with it, a query
// without a path none.
//
// Where such a part is followed by another script inside the domain, twitter-text lets the range reach from the part to
// the path's end, but counts only as many characters as the part and the path have; covered follows it. So does the
// search for the part's text, which finds an earlier occurrence first.
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

// acceptable checks what the form alone does not tell: the length of the URL and of the domain's labels.
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

// utf16Length returns the length of the text in UTF-16 units, in which twitter-text counts.
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

// cover returns how many bytes of the text that many UTF-16 units cover. Where they end between the two units of a
// character, the character is covered and what its second unit weighs is returned too.
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
