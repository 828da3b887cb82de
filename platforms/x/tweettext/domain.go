// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"unicode/utf8"
)

// candidateAt returns the URL candidate whose first domain label ends at the dot. The domain is the longest sequence of
// labels that ends in a top-level domain. Labels start and end with a domain character, and may contain '-' and, except
// for the last one, '_'.
func (s *scanner) candidateAt(dot int) (candidate, bool) {
	single, several := tldEnd(s.text, dot+1), s.chainEnd(dot)
	if single < 0 && several < 0 {
		return candidate{}, false
	}

	label := s.labelStart(dot)
	c := candidate{domainEnd: max(single, several)}
	earliest := label
	if several < 0 {
		// In the label before the top-level domain, the domain may start after the last underscore.
		earliest += 1 + strings.LastIndexByte(s.text[label:dot], '_')
	}
	if last, _ := utf8.DecodeLastRuneInString(s.text[label:dot]); label == dot || !domainRune(last) {
		return candidate{}, false
	}
	if start := s.protocolStart(label); start >= 0 && earliest == label {
		c.start, c.domain = start, label
	} else if start, split := s.bareStart(label, earliest, dot); start >= 0 {
		c.start, c.domain, c.split = start, start, split
	} else {
		return candidate{}, false
	}

	c.path, c.pathEnd, c.end = c.domainEnd, c.domainEnd, c.domainEnd
	if c.end < len(s.text) && strings.IndexByte(":/?", s.text[c.end]) >= 0 {
		after := afterDomain.FindStringSubmatchIndex(s.text[c.end:])
		if c.end += after[1]; after[2] >= 0 {
			c.path, c.pathEnd = c.domainEnd+after[2], c.domainEnd+after[3]
		}
	}
	return c, true
}

// chainEnd returns the end of the last top-level domain that directly follows one of the dot-terminated labels after
// the dot, or -1. The label before the top-level domain has no underscore.
//
// Each chain of labels is scanned only once, for all of its dots.
func (s *scanner) chainEnd(dot int) int {
	if dot > s.chain.last {
		s.chain = s.chainFrom(dot)
	}
	if dot < s.chain.final {
		return s.chain.end
	}
	return -1
}

type chain struct {
	last int
	// final is the last dot that is followed by a top-level domain and not preceded by a label with an underscore, and
	// end is the end of that top-level domain. If there is none, they are the first dot and -1.
	final, end int
}

// chainFrom returns the chain that starts after a dot.
func (s *scanner) chainFrom(dot int) chain {
	run := chain{last: dot, final: dot, end: -1}
	for {
		next, underscore := s.labelEnd(run.last + 1)
		if next < 0 {
			return run
		}
		run.last = next
		if underscore {
			continue
		}
		if end := tldEnd(s.text, next+1); end >= 0 {
			run.final, run.end = next, end
		}
	}
}

// labelEnd returns the offset of the dot that ends the label at the given offset, or -1 if there is no such label. It
// also reports whether the label contains an underscore.
func (s *scanner) labelEnd(at int) (end int, underscore bool) {
	inside := true // a label cannot end at its start, or after '-' or '_'
	for i := at; i < len(s.text); {
		r, width := utf8.DecodeRuneInString(s.text[i:])
		switch {
		case domainRune(r):
			inside = false
		case r == '.' && !inside:
			return i, underscore
		case i == at || r != '-' && r != '_':
			return -1, false
		default:
			inside = true
			underscore = underscore || r == '_'
		}
		i += width
	}
	return -1, false
}

// labelStart returns the start of the label that ends at the dot, but no offset before the end of the last candidate.
func (s *scanner) labelStart(dot int) int {
	for dot > s.from {
		r, width := utf8.DecodeLastRuneInString(s.text[s.from:dot])
		if !labelRune(r) {
			break
		}
		dot -= width
	}
	return dot
}

// protocolStart returns the start of a protocol that ends at the offset, or -1. The protocol must be followed by a
// domain character, and a URL must be allowed after the character before it.
func (s *scanner) protocolStart(at int) int {
	if r, _ := utf8.DecodeRuneInString(s.text[at:]); !domainRune(r) {
		return -1
	}
	for _, protocol := range []string{"https://", "http://"} {
		start := at - len(protocol)
		if start >= s.from && hasFoldedPrefix(s.text[start:], protocol) && s.mayBegin(start) {
			return start
		}
	}
	return -1
}

// mayBegin reports whether the character before the offset allows a URL to start there. The start of the text always
// does.
func (s *scanner) mayBegin(at int) bool {
	if at == 0 {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s.text[s.from:at])
	return at > s.from && precedingRune(before)
}

// bareStart returns the start of a domain without a protocol, within the label before the dot and no earlier than
// earliest, or -1.
//
// twitter-text matches a preceding character together with the URL, in UTF-16. Two consequences are reproduced. At the
// start of the text, the first character is tried as the preceding one before it is tried as the first of the URL:
// "éa.com" yields a.com, but " éa.com" yields éa.com. And if no valid character precedes a character above U+FFFF, its
// first UTF-16 unit may count as the preceding character of a domain that starts with its second unit (split).
func (s *scanner) bareStart(label, earliest, dot int) (start int, split bool) {
	if label == 0 {
		first, width := utf8.DecodeRuneInString(s.text)
		if earliest == 0 && first > 0xFFFF {
			return 0, true
		}
		if second, _ := utf8.DecodeRuneInString(s.text[width:]); width >= earliest && width < dot &&
			precedingRune(first) && domainRune(second) {
			return width, false
		}
	}
	for at := earliest; at < dot; {
		r, width := utf8.DecodeRuneInString(s.text[at:])
		if domainRune(r) && s.mayBegin(at) {
			return at, false
		}
		if r > 0xFFFF {
			return at, true
		}
		at += width
	}
	return -1, false
}

// asciiLabelStart returns the start of the label that ends at end, no earlier than from.
func asciiLabelStart(domain string, from, end int) int {
	for end > from {
		r, width := utf8.DecodeLastRuneInString(domain[from:end])
		if !asciiLabelRune(r) {
			break
		}
		end -= width
	}
	return end
}

// asciiLabelEnd returns the end of the label that starts at an offset.
func asciiLabelEnd(domain string, start int) int {
	for start < len(domain) {
		r, width := utf8.DecodeRuneInString(domain[start:])
		if !asciiLabelRune(r) {
			break
		}
		start += width
	}
	return start
}

// asciiDomain returns the first ASCII or accented Latin domain at or after the offset, within a domain in any script.
// Its top-level domain may be in any script. The end is -1 if there is none.
func asciiDomain(domain string, from int) (start, end int) {
	for at := from; ; {
		next := strings.IndexByte(domain[at:], '.')
		if next < 0 {
			return 0, -1
		}
		dot := at + next
		if start = asciiLabelStart(domain, from, dot); start == dot {
			at = dot + 1
			continue
		}
		end = tldEnd(domain, dot+1)
		for {
			label := asciiLabelEnd(domain, dot+1)
			if label == dot+1 || label == len(domain) || domain[label] != '.' {
				break
			}
			dot = label
			if tld := tldEnd(domain, dot+1); tld >= 0 {
				end = tld
			}
		}
		if end >= 0 {
			return start, end
		}
		at = dot + 1
	}
}
