// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/herald-social/herald/sandbox/emoji"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/links"
)

const (
	// maxText is how long a text may be.
	maxText = 500
	// maxLinks is how many different addresses a post may have, the attached one included.
	maxLinks = 5
	// maxTopic is how long a topic may be, in characters.
	maxTopic = 50
)

// checkText applies the limits of a text and of its addresses. Only a post of nothing else needs one.
func checkText(kind, text, attached string) *graph.Error {
	found := map[string]bool{}
	for _, l := range links.Find(text) {
		found[text[l[0]:l[1]]] = true
	}
	if attached != "" {
		address, err := url.Parse(attached)
		if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
			return graph.BadParam("Param link_attachment must be a valid URL.")
		}
		found[attached] = true
	}
	switch {
	case kind == kindText && strings.TrimSpace(text) == "":
		return graph.BadParam("The parameter text is required for media_type TEXT.")
	case textLength(text) > maxText:
		return graph.BadParam("Param text must be at most %d characters long.", maxText)
	case len(found) > maxLinks:
		return graph.BadParam("THREADS_API__LINK_LIMIT_EXCEEDED: a post may have at most %d links.", maxLinks)
	}
	return nil
}

// textLength counts as Threads does: an emoji costs the bytes of its UTF-8, everything else that a reader takes for one
// character costs 1.
func textLength(text string) int {
	n, step := 0, -1
	for text != "" {
		var cluster string
		cluster, text, _, step = uniseg.FirstGraphemeClusterInString(text, step)
		if emoji.Is(cluster) {
			n += len(cluster)
		} else {
			n++
		}
	}
	return n
}

// checkTopic checks the topic, or takes the first tag of the text for one.
func checkTopic(given bool, kept *detail, text string) *graph.Error {
	if !given {
		kept.Topic = firstTag(text)
		return nil
	}
	n := utf8.RuneCountInString(kept.Topic)
	if n < 1 || n > maxTopic || strings.ContainsAny(kept.Topic, ".&") {
		return graph.BadParam("Param topic_tag must have 1 to %d characters, without full stops and ampersands.", maxTopic)
	}
	return nil
}

func firstTag(text string) string {
	previous := ' '
	for i, r := range text {
		if r == '#' && !isWord(previous) {
			tag, _, _ := strings.Cut(text[i+1:], "#")
			if end := strings.IndexFunc(tag, func(r rune) bool { return !isWord(r) }); end >= 0 {
				tag = tag[:end]
			}
			if tag != "" && utf8.RuneCountInString(tag) <= maxTopic {
				return tag
			}
		}
		previous = r
	}
	return ""
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
