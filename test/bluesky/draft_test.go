// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"image/color"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/must"
)

// draft is a post that a test will create.
type draft struct {
	name     string
	category v1alpha1.Category
	language string
	// parts are the cards of a thread. Any other post has one part.
	parts []part
}

// part is one post of a thread: its text, and its images or video.
type part struct {
	text  string
	files [][]byte
}

func gray(t *testing.T, shade uint8) []byte {
	t.Helper()
	data, err := mediatest.Picture(color.Gray{Y: shade})
	must.Succeed(t, err)
	return data
}

func moving(t *testing.T) []byte {
	t.Helper()
	data, err := mediatest.Film(envtest.Root())
	must.Succeed(t, err)
	return data
}

// fileType returns the type of the draft's files, and a name for one.
func (d *draft) fileType() (mime v1alpha1.MimeType, name string) {
	if d.category == v1alpha1.CategoryVideo {
		return v1alpha1.MimeMP4, "film.mp4"
	}
	return v1alpha1.MimeJPEG, "picture.jpg"
}

// spec returns the spec of the draft's post to the first account. upload uploads a file, and returns the name of its
// Media.
func (d *draft) spec(upload func(data []byte) string) v1alpha1.PostSpec {
	target := v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: connection}, Language: d.language}
	spec := v1alpha1.PostSpec{Category: d.category}
	cards := make([]v1alpha1.TreeCard, len(d.parts))
	for i, p := range d.parts {
		cards[i].Caption = p.text
		for _, data := range p.files {
			cards[i].MediaRefs = append(cards[i].MediaRefs, v1alpha1.MediaReference{Name: upload(data)})
		}
	}
	if d.category != v1alpha1.CategoryTree {
		target.Caption = cards[0].Caption
	}
	switch d.category {
	case v1alpha1.CategoryImage:
		spec.Image = &v1alpha1.ImageContent{MediaRefs: cards[0].MediaRefs}
	case v1alpha1.CategoryVideo:
		spec.Video = &v1alpha1.VideoContent{MediaRef: cards[0].MediaRefs[0]}
	case v1alpha1.CategoryTree:
		spec.Tree = &v1alpha1.TreeContent{Cards: cards}
	case v1alpha1.CategoryText:
	}
	spec.Targets = []v1alpha1.PostTarget{target}
	return spec
}

// byText returns posts by their texts.
func byText(posts []post) map[string][]post {
	out := map[string][]post{}
	for _, p := range posts {
		out[p.Text] = append(out[p.Text], p)
	}
	return out
}

// check checks that Bluesky's client reads each of the draft's parts once, with its files, as a reply to the previous
// part.
func (d *draft) check(t *testing.T, published map[string][]post) {
	t.Helper()
	var first, last *ref
	for i, p := range d.parts {
		all := published[p.text]
		if len(all) != 1 {
			t.Errorf("%q occurs %d times on the server", p.text, len(all))
			return
		}
		got := &all[0]
		if languages := strings.Join(got.Languages, " "); languages != d.language {
			t.Errorf("the language of %q is %q, want %q", p.text, languages, d.language)
		}
		if i > 0 && (got.Parent == nil || got.Root == nil || *got.Parent != *last || *got.Root != *first) || i == 0 && got.Parent != nil {
			t.Errorf("%q replies to %+v in the thread of %+v", p.text, got.Parent, got.Root)
		}
		last = &ref{got.URI, got.CID}
		if i == 0 {
			first = last
		}
		d.checkFiles(t, &p, got)
	}
}

func (d *draft) checkFiles(t *testing.T, p *part, got *post) {
	t.Helper()
	files := got.Images
	if got.Video != nil {
		files = append(files, *got.Video)
	}
	if len(files) != len(p.files) || (got.Video != nil) != (d.category == v1alpha1.CategoryVideo) {
		t.Errorf("%q has %d images and the video %+v, want %d files", p.text, len(got.Images), got.Video, len(p.files))
		return
	}
	mime, _ := d.fileType()
	for i, file := range files {
		if file.Size != len(p.files[i]) || file.Downloaded != file.Size || file.MIME != string(mime) || file.Alt != altText {
			t.Errorf("file %d of %q is %+v, want %d bytes of %s", i+1, p.text, file, len(p.files[i]), mime)
		}
	}
}
