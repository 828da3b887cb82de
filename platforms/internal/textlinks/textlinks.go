// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package textlinks finds the parts of text that a platform shows as links.
package textlinks

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/herald-social/herald/platforms"
)

// Pattern describes one kind of link.
type Pattern struct {
	// Match matches candidates. If it has a group, the group is the link.
	Match *regexp.Regexp
	// Accept reports whether a candidate is a link, given the text before and after it; nil accepts all candidates.
	Accept func(before, after string) bool
	// Trim contains characters that are cut off the link's end, such as the period after an address.
	Trim string
	// Shown returns what the platform shows instead of the link; nil if it shows the text itself.
	Shown func(link string) string
}

// Find returns found and the links that the patterns match, in order. Where links overlap, those in found take
// precedence, and then those of earlier patterns.
func Find(text string, found []platforms.Link, patterns ...Pattern) []platforms.Link {
	found = slices.Clone(found)
	for _, p := range patterns {
		taken := slices.Clone(found)
		for _, at := range p.Match.FindAllStringSubmatchIndex(text, -1) {
			link := p.link(text, at)
			for len(taken) > 0 && taken[0].End <= link.Start {
				taken = taken[1:]
			}
			if len(taken) > 0 && taken[0].Start < link.End || p.Accept != nil && !p.Accept(text[:link.Start], text[link.End:]) {
				continue
			}
			found = append(found, link)
		}
		slices.SortFunc(found, func(a, b platforms.Link) int { return cmp.Compare(a.Start, b.Start) })
	}
	return found
}

func (p *Pattern) link(text string, at []int) platforms.Link {
	link := platforms.Link{Start: at[0], End: at[1]}
	if len(at) > 2 {
		link.Start, link.End = at[2], at[3]
	}
	link.End = link.Start + len(strings.TrimRight(text[link.Start:link.End], p.Trim))
	if p.Shown != nil {
		link.Shown = p.Shown(text[link.Start:link.End])
	}
	return link
}

// punctuation ends an address and may follow it without a space.
const punctuation = ".,;:!?'\"’”)]}>…"

// Addresses matches addresses that start with http://, https:// or www.
var Addresses = Pattern{Match: regexp.MustCompile(`(?i)\b(?:https?://|www\.)[^\s\p{Z}<>"]+`), Trim: punctuation}

// Hashtags matches a # that does not follow a word, with letters, digits and underscores after it, at least one of
// which is a letter.
var Hashtags = Pattern{
	Match:  regexp.MustCompile(`[#＃](?:[\p{N}_][\p{L}\p{M}\p{N}_]*)?\p{L}[\p{L}\p{M}\p{N}_]*`),
	Accept: func(before, _ string) bool { return !EndsInWord(before) && !strings.HasSuffix(before, "&") },
}

// EndsInWord reports whether the text ends in a letter, a digit, a mark or an underscore.
func EndsInWord(text string) bool {
	last, size := utf8.DecodeLastRuneInString(text)
	return size > 0 && (last == '_' || unicode.In(last, unicode.L, unicode.N, unicode.M))
}
