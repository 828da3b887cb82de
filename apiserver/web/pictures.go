// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// maxPictures is how many pictures of files a page shows, some 700 bytes each: a thread can name 2,000 files, and goes to as many
// accounts as there are.
const maxPictures = 300

// pictures are those of one page. Each file is looked up once, however many accounts show it.
type pictures struct {
	// previews are those of the request; nil before the first.
	previews *bridge.Previews
	made     map[string]g.Node
	shown    int
}

// allFiles is for pages that show every file of a post, whatever its platforms take.
const allFiles = maxPictures

// mostFiles is how many files of a post, or of a part of a thread, a platform shows.
func (s *Site) mostFiles(p v1alpha1.Platform, part bool) int {
	limits, _ := s.Service.Capabilities(p)
	if part {
		return max(limits.Card.MaxItems, 1)
	}
	return max(limits.MaxImages, 1) // a video stands alone
}

// thumbs are small pictures of files, of which there are at most so many.
func (s *Site) thumbs(v *visit, files []v1alpha1.LocalReference, most int) g.Node {
	if len(files) == 0 {
		return nil
	}
	shown := files[:min(len(files), most)]
	return g.Group{
		h.Div(h.Class("thumbs of-"+strconv.Itoa(min(len(shown), 4))), g.Map(shown, func(f v1alpha1.LocalReference) g.Node { return v.thumb(s, f.Name) })),
		g.If(len(files) > most, h.P(h.Class("soft"), g.Text("and "+plural(len(files)-len(shown), "more file")))),
	}
}

// thumb is a small picture of a file.
func (v *visit) thumb(s *Site, name string) g.Node {
	p := &v.pictures
	if p.shown == maxPictures {
		return noPicture()
	}
	p.shown++
	if made, ok := p.made[name]; ok {
		return made
	}
	if p.previews == nil {
		p.previews = s.Service.Previews(v.caller)
	}
	if p.made == nil {
		p.made = map[string]g.Node{}
	}
	var out strings.Builder
	_ = v.picture(p.previews, name).Render(&out) // into memory
	p.made[name] = g.Raw(out.String())
	return p.made[name]
}

// picture is a small picture of a file, with an address that is good for some minutes.
func (v *visit) picture(of *bridge.Previews, name string) g.Node {
	preview, err := of.Of(v.Context(), name)
	switch {
	case err != nil || preview.URL == "":
		return noPicture()
	case strings.HasPrefix(string(preview.MimeType), "video/"):
		return h.Video(h.Class("thumb"), h.Src(preview.URL), h.Preload("metadata"), h.Muted(), g.Attr("playsinline"), h.Aria("label", "Video"))
	default:
		return h.Img(h.Class("thumb"), h.Src(preview.URL), h.Alt(preview.FileName), h.Loading("lazy"))
	}
}

// noPicture stands for a file that cannot be shown.
func noPicture() g.Node { return h.Span(h.Class("thumb gone"), g.Text("File")) }
