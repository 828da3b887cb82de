// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"regexp"
	"strings"
)

// span is a part of a post's text: an address, a hashtag or name, or plain text.
type span struct {
	Text string
	Href string
	Tag  bool
}

// spans splits text into parts that are rendered differently.
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

// tagPattern matches a hashtag or a name, with the preceding character.
var tagPattern = regexp.MustCompile(`(?:^|[^\pL\p{Nd}_])([#@][\pL\p{Nd}_]+)`)

// tags appends text without addresses, with its hashtags and names as separate spans.
func tags(out []span, text string) []span {
	at := 0
	for _, m := range tagPattern.FindAllStringSubmatchIndex(text, -1) {
		if m[2] > at {
			out = append(out, span{Text: text[at:m[2]]})
		}
		out = append(out, span{Text: text[m[2]:m[3]], Tag: true})
		at = m[3]
	}
	if at < len(text) {
		out = append(out, span{Text: text[at:]})
	}
	return out
}
