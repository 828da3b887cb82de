// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"strings"
	"unicode"
)

// span is a stretch of a post's text: an address, a tag or name, or plain.
type span struct {
	Text string
	Href string
	Tag  bool
}

// spans cuts a text into what is shown differently.
func spans(platform Platform, text string) []span {
	text = strings.TrimSpace(text)
	var out []span
	at := 0
	for _, l := range platform.Links(text) {
		out = tags(out, text[at:l[0]])
		address := text[l[0]:l[1]]
		href := address
		if !strings.Contains(strings.ToLower(address), "://") {
			href = "http://" + address
		}
		out = append(out, span{Text: address, Href: href})
		at = l[1]
	}
	return tags(out, text[at:])
}

// tags adds a text without addresses, with its hashtags and names apart.
func tags(out []span, text string) []span {
	for text != "" {
		start := tagStart(text)
		if start < 0 {
			return append(out, span{Text: text})
		}
		if start > 0 {
			out = append(out, span{Text: text[:start]})
		}
		end := tagEnd(text, start)
		out = append(out, span{Text: text[start:end], Tag: true})
		text = text[end:]
	}
	return out
}

// tagStart is the offset of the first # or @ that begins a word of at least one more letter, or -1.
func tagStart(text string) int {
	previous := ' '
	for i, r := range text {
		if (r == '#' || r == '@') && !isWord(previous) && tagEnd(text, i) > i+1 {
			return i
		}
		previous = r
	}
	return -1
}

func tagEnd(text string, start int) int {
	for i, r := range text[start+1:] {
		if !isWord(r) {
			return start + 1 + i
		}
	}
	return len(text)
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
