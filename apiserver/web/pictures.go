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
	// found are the files whose previews were made.
	found map[string]bridge.MediaPreview
	shown int
	// players reports that videos have player controls, and moment is the time of their cover picture, in seconds;
	// empty if the platform chooses it.
	players bool
	moment  string
}

// allFiles is for pages that show all of a post's files, regardless of the platforms' limits.
const allFiles = maxPictures

// maxFilesOf returns how many files a platform shows in a post or in a part of a thread.
func (s *Site) maxFilesOf(p v1alpha1.Platform, part bool) int {
	limits, _ := s.Service.Capabilities(p)
	if part {
		return max(limits.Card.MaxItems, 1)
	}
	return max(limits.MaxImages, 1) // a post has one video
}

// thumbs shows previews of at most the given number of files.
func (s *Site) thumbs(v *visit, files []v1alpha1.MediaReference, most int) g.Node {
	if len(files) == 0 {
		return nil
	}
	shown := files[:min(len(files), most)]
	return g.Group{
		h.Div(h.Class("thumbs of-"+strconv.Itoa(min(len(shown), 4))), g.Map(shown, func(f v1alpha1.MediaReference) g.Node { return v.thumb(s, f.Name) })),
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
		p.made, p.found = map[string]g.Node{}, map[string]bridge.MediaPreview{}
	}
	var out strings.Builder
	_ = v.picture(p.previews, name).Render(&out) // a Builder returns no errors
	p.made[name] = g.Raw(out.String())
	return p.made[name]
}

// picture is a file's preview, whose URL is valid for a few minutes.
func (v *visit) picture(of *bridge.Previews, name string) g.Node {
	preview, err := of.Of(v.Context(), name)
	v.pictures.found[name] = preview
	// The size gives the picture its shape before it is loaded.
	size := g.If(preview.Width > 0, g.Group{h.Width(strconv.Itoa(int(preview.Width))), h.Height(strconv.Itoa(int(preview.Height)))})
	switch {
	case err != nil || preview.URL == "":
		return noPicture()
	case isVideo(preview):
		return v.film(preview, size)
	default:
		return h.Img(h.Class("thumb"), h.Src(preview.URL), h.Alt(preview.FileName), size, h.Loading("lazy"))
	}
}

// film shows a video: a player, or its first frame. A fragment of the URL selects the frame that is shown before it
// plays (Media Fragments URI, "temporal dimension").
func (v *visit) film(preview bridge.MediaPreview, size g.Node) g.Node {
	source := preview.URL
	if v.pictures.moment != "" {
		source += "#t=" + v.pictures.moment
	}
	return h.Video(h.Class("thumb"), h.Src(source), size, h.Preload("metadata"), g.Attr("playsinline"), h.Aria("label", "Video "+preview.FileName),
		g.If(v.pictures.players, h.Controls()), g.If(!v.pictures.players, h.Muted()))
}

// momentOf returns the time of a post's cover picture in seconds, or "".
func momentOf(spec *v1alpha1.PostSpec) string {
	if spec.Video == nil || spec.Video.ThumbnailOffsetMillis == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*spec.Video.ThumbnailOffsetMillis)/1000, 'f', -1, 64)
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
