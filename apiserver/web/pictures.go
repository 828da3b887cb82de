// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
)

// maxPictures limits the file previews on a page, about 700 bytes each: a thread can contain 2,000 files and go to
// every account.
const maxPictures = 300

// pictures caches one page's previews. Each file is looked up once, even if several accounts show it.
type pictures struct {
	// previews is the request's preview source; nil until it is first used.
	previews *bridge.Previews
	made     map[string]g.Node
	// names are the names of the files whose previews were made.
	names map[string]string
	shown int
}

// allFiles is for pages that show all of a post's files, whatever the platforms' limits.
const allFiles = maxPictures

// mostFiles returns how many files a platform shows in a post or in a part of a thread.
func (s *Site) mostFiles(p v1alpha1.Platform, part bool) int {
	limits, _ := s.Service.Capabilities(p)
	if part {
		return max(limits.Card.MaxItems, 1)
	}
	return max(limits.MaxImages, 1) // a post has one video
}

// thumbs shows previews of at most the given number of files.
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
		p.made, p.names = map[string]g.Node{}, map[string]string{}
	}
	var out strings.Builder
	_ = v.picture(p.previews, name).Render(&out) // a Builder returns no errors
	p.made[name] = g.Raw(out.String())
	return p.made[name]
}

// picture is a file's preview, whose URL is valid for a few minutes.
func (v *visit) picture(of *bridge.Previews, name string) g.Node {
	preview, err := of.Of(v.Context(), name)
	v.pictures.names[name] = preview.FileName
	switch {
	case err != nil || preview.URL == "":
		return noPicture()
	case strings.HasPrefix(string(preview.MimeType), "video/"):
		return h.Video(h.Class("thumb"), h.Src(preview.URL), h.Preload("metadata"), h.Muted(), g.Attr("playsinline"), h.Aria("label", "Video"))
	default:
		return h.Img(h.Class("thumb"), h.Src(preview.URL), h.Alt(preview.FileName), h.Loading("lazy"))
	}
}

// loadThumbnails reads the pictures of a list's posts.
func (s *Site) loadThumbnails(v *visit, posts []postindex.Summary) {
	var names []string
	for i := range posts {
		if p := &posts[i]; p.Picture != "" && p.Category != v1alpha1.CategoryVideo && !slices.Contains(names, p.Picture) {
			names = append(names, p.Picture)
		}
	}
	v.thumbnails = s.Service.Thumbnails(v.Context(), v.caller, names)
}

// tile is the picture of a post in a list, or a drawing for a file without a thumbnail.
func (v *visit) tile(p *postindex.Summary) g.Node {
	if p.Picture == "" || v.thumbnails == nil {
		return nil
	}
	if found, ok := v.thumbnails[p.Picture]; ok {
		return h.Img(h.Class("tile"), h.Src(found.URL), h.Alt(""), h.Width("56"), h.Height("56"), h.Loading("lazy"))
	}
	icon := "image"
	if p.Category == v1alpha1.CategoryVideo {
		icon = "film"
	}
	return h.Span(h.Class("tile"), drawing(icon))
}

// noPicture is the placeholder for a file without a preview.
func noPicture() g.Node { return h.Span(h.Class("thumb gone"), g.Text("File")) }
