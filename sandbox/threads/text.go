// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"strings"

	"github.com/rivo/uniseg"

	"github.com/herald-social/herald/sandbox/emoji"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/links"
)

const (
	// maxText is the maximum length of the text.
	maxText = 500
	// maxLinks is the maximum number of distinct links in a post.
	maxLinks = 5
)

// checkText enforces the limits on text and its links. Only a post without media needs text.
func checkText(kind, text string) *graph.Error {
	found := map[string]bool{}
	for _, l := range links.Find(text) {
		found[text[l[0]:l[1]]] = true
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

// textLength returns the length as Threads counts it: an emoji counts as its number of UTF-8 bytes, every other
// grapheme cluster as 1.
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
