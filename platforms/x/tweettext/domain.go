// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"unicode/utf8"
)

// candidateAt returns what has the form of a URL and its domain's first label right before the dot. The domain is the
// longest run of labels that ends in a top-level domain: labels begin and end with a domain character, may hold '-',
// and except for the last may hold '_'.
func (s *scanner) candidateAt(dot int) (candidate, bool) {
	single, several := tldEnd(s.text, dot+1), s.chainEnd(dot)
	if single < 0 && several < 0 {
		return candidate{}, false
	}

	label := s.labelStart(dot)
	c := candidate{domainEnd: max(single, several)}
	earliest := label
	if several < 0 {
		// The label is the last one, and a domain may begin behind its last underscore.
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

// chainEnd returns where the last top-level domain ends that follows, directly, one of the labels behind the dot that are
// each ended by a dot of their own; or -1. The label before the top-level domain has no underscore.
//
// The labels are followed once for all their dots.
func (s *scanner) chainEnd(dot int) int {
	if dot > s.chain.last {
		s.chain = s.chainFrom(dot)
	}
	if dot < s.chain.final {
		return s.chain.end
	}
	return -1
}

// chain is a run of labels, each between two dots.
type chain struct {
	// last is the run's last dot.
	last int
	// final is the last of its dots that a top-level domain follows and no label with an underscore precedes, and end
	// is where that top-level domain ends; the run's first dot and -1 if there is none.
	final, end int
}

// chainFrom returns the run of labels that begins behind a dot.
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

// labelEnd returns the offset of the dot that ends the label which begins at the offset, or -1 if there is no such label;
// and whether it holds an underscore.
func (s *scanner) labelEnd(at int) (end int, underscore bool) {
	inside := true // at the beginning, and behind '-' and '_', a label cannot end
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

// labelStart returns where the label that ends at the dot begins, not before the last candidate's end.
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

// protocolStart returns where a protocol begins that ends at the offset, or -1. The character behind the protocol must
// be able to begin a domain, the one before it to precede a URL.
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

// mayBegin tells whether a URL may begin at the offset, by the character before it. At the very beginning of the text
// there need be none.
func (s *scanner) mayBegin(at int) bool {
	if at == 0 {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s.text[s.from:at])
	return at > s.from && precedingRune(before)
}

// bareStart returns where a domain without a protocol begins in the label before the dot, not before earliest; or -1.
//
// twitter-text looks for a character and the URL that it precedes, in UTF-16. Two consequences are kept. At the
// beginning of the text the first character is tried as the one that precedes, before it is tried as the URL's first:
// "éa.com" gives a.com, but " éa.com" éa.com. And a character beyond U+FFFF that no URL may begin with, for lack of one
// that may precede it, may precede with its first half a domain that begins with its second half (split).
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

// asciiLabelStart returns where the label begins that ends at an offset, not before from.
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

// asciiLabelEnd returns where the label ends that begins at an offset.
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

// asciiDomain returns the first domain in ASCII or accented Latin from the offset on, within a domain in any script. Its
// top-level domain may be in any script. The end is -1 if there is none.
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
