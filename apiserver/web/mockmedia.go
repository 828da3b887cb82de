// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// arrangement is how a platform arranges a post's files. Its class selects the styles, which set the ratios: the
// Content-Security-Policy forbids styles on elements.
type arrangement string

const (
	// one is a single file in its own shape, within the platform's bounds.
	one arrangement = "one"
	// pattern shows the files at once, arranged in a way that depends on their number.
	pattern arrangement = "pattern"
	// strip is a row of files of the same height, which scrolls sideways.
	strip arrangement = "strip"
	// slides are a carousel: one file at a time.
	slides arrangement = "slides"
	// upright and screen are players of 9:16 and 16:9. A file of another shape gets bars.
	upright arrangement = "upright"
	screen  arrangement = "screen"
)

// maxTiles is how many pictures of an album Facebook shows in the feed. The last one says how many more there are.
const maxTiles = 5

// longestShort is the maximum duration of a Short (YouTube Help, "Get started creating YouTube Shorts").
const longestShort = 3 * time.Minute

// arrange returns how a platform arranges the files of a post or of a part of a thread.
func arrange(p v1alpha1.Platform, files []bridge.MediaPreview) arrangement {
	first := files[0]
	switch single := len(files) == 1; p {
	case v1alpha1.PlatformX, v1alpha1.PlatformFacebook, v1alpha1.PlatformBluesky, v1alpha1.PlatformMastodon:
		if !single {
			return pattern
		}
	case v1alpha1.PlatformThreads:
		if !single {
			return strip
		}
	case v1alpha1.PlatformInstagram:
		if single && isVideo(first) {
			return upright // a reel
		}
		if !single {
			return slides
		}
	case v1alpha1.PlatformTikTok:
		if !single {
			return slides
		}
		return upright
	case v1alpha1.PlatformYouTube:
		if first.Height > 0 && first.Height >= first.Width && first.Duration <= longestShort {
			return upright
		}
		return screen
	}
	return one
}

func isVideo(f bridge.MediaPreview) bool { return strings.HasPrefix(string(f.MimeType), "video/") }

// mockMedia shows at most the given number of files, as a platform arranges them.
func (s *Site) mockMedia(v *visit, p v1alpha1.Platform, files []v1alpha1.MediaReference, most int) g.Node {
	if len(files) == 0 {
		return nil
	}
	all := files[:min(len(files), most)]
	shown := all
	if p == v1alpha1.PlatformFacebook {
		shown = all[:min(len(all), maxTiles)]
	}
	cells := make([]g.Node, 0, len(shown))
	found := make([]bridge.MediaPreview, 0, len(shown))
	for _, f := range shown {
		cells = append(cells, v.thumb(s, f.Name))
		found = append(found, v.pictures.found[f.Name])
	}
	as := arrange(p, found)
	return g.Group{
		h.Div(h.Class("media "+string(as)+" of-"+strconv.Itoa(len(cells))), mockCells(as, cells, len(all))),
		g.If(len(files) > most, h.P(h.Class("soft"), g.Text("and "+plural(len(files)-most, "more file")))),
	}
}

// mockCells are the files within an arrangement. An arrangement that scrolls can be focused, so that arrow keys scroll
// it, and has buttons for a mouse.
func mockCells(as arrangement, cells []g.Node, all int) g.Node {
	cell := func(i int) g.Node {
		hiddenTiles := all - len(cells)
		return h.Li(cells[i],
			g.If(as == slides, h.Span(h.Class("place"), g.Text(strconv.Itoa(i+1)+"/"+strconv.Itoa(len(cells))))),
			g.If(hiddenTiles > 0 && i == len(cells)-1, h.Span(h.Class("rest"), g.Text("+"+strconv.Itoa(hiddenTiles)))))
	}
	scrolls := as == slides || as == strip
	button := func(way, label, icon string) g.Node {
		return h.Button(h.Type("button"), h.Class("button square turn-"+way), h.Data("turn", way), h.Aria("label", label), drawing(icon))
	}
	return g.Group{
		h.Ul(g.If(scrolls, g.Group{h.TabIndex("0"), h.Aria("label", plural(len(cells), "file")+", side by side")}), g.Map(indexes(len(cells)), cell)),
		g.If(scrolls, g.Group{button("back", "Previous file", "before"), button("on", "Next file", "after")}),
	}
}
