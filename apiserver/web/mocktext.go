// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"strings"

	"github.com/rivo/uniseg"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/platforms"
)

// mockText shows text as a platform does: with its links, and folded where readers must expand it.
func mockText(text string, d platforms.Display) g.Node {
	if text == "" {
		return h.P(h.Class("mock-text soft"), g.Text("No text yet."))
	}
	var links []platforms.Link
	if d.Links != nil {
		links = d.Links(text)
	}
	at := foldAt(text, links, d)
	if at == len(text) {
		return h.Div(h.Class("mock-text"), h.Dir("auto"), linked(text, links, 0, at))
	}
	return h.Details(h.Class("mock-text"), h.Dir("auto"),
		h.Summary(linked(text, links, 0, at), h.Span(h.Class("more"), g.Text("… more"))),
		linked(text, links, at, len(text)))
}

// linked shows a part of a text, which does not start or end within a link. The links have no address, because the
// preview must not load other sites.
func linked(text string, links []platforms.Link, from, to int) g.Node {
	var out g.Group
	for _, l := range links {
		if l.Start < from || l.End > to {
			continue
		}
		full := text[l.Start:l.End]
		shown := cmp.Or(l.Shown, full)
		out = append(out, g.Text(text[from:l.Start]), h.Span(h.Class("tag"), g.If(shown != full, h.Title(full)), g.Text(shown)))
		from = l.End
	}
	return append(out, g.Text(text[from:to]))
}

// foldAt returns where a platform hides the rest of a text, or the length of the text. It does not divide a word, a
// link or a character, unless nothing precedes it.
func foldAt(text string, links []platforms.Link, d platforms.Display) int {
	if d.FoldAfter == 0 && d.FoldLines == 0 {
		return len(text)
	}
	at, blank, count, lines, state := 0, 0, 0, 1, -1
	for rest := text; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		newline := strings.Contains(cluster, "\n")
		if newline {
			lines++
		}
		count++
		if count > d.FoldAfter && d.FoldAfter > 0 || lines > d.FoldLines && d.FoldLines > 0 {
			if strings.TrimSpace(text[at:]) == "" {
				break
			}
			if !newline && blank > 0 && strings.TrimSpace(cluster) != "" {
				at = blank
			}
			return outsideLinks(at, links)
		}
		if at += len(cluster); strings.TrimSpace(cluster) == "" {
			blank = at
		}
	}
	return len(text)
}

// outsideLinks moves a position out of a link: before it, or after a link that starts the text.
func outsideLinks(at int, links []platforms.Link) int {
	for _, l := range links {
		switch {
		case l.Start >= at || at >= l.End:
		case l.Start > 0:
			return l.Start
		default:
			return l.End
		}
	}
	return at
}
