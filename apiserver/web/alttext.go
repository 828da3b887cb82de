// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// fileFields contains the fields that the post form has for each file, by field name: its alt text and its focal point.
// A field name represents one file in one list of files. It has several values if the list contains the file several
// times, in the order of the list.
type fileFields map[string][]string

// kindAlt is the kind of the alt text fields.
const kindAlt = "alt"

// fieldName returns the name of a file's fields of one kind. list is the name of the field that lists the file.
func fieldName(kind, list, id string) string { return kind + "-" + list + "-" + id }

// read reads the fields of a list of files from the form.
func (a fileFields) read(form url.Values, list string, ids []string) {
	for _, id := range ids {
		for _, kind := range []string{kindAlt, kindFocusX, kindFocusY} {
			name := fieldName(kind, list, id)
			if _, known := a[name]; known {
				continue
			}
			for _, typed := range form[name] {
				a[name] = append(a[name], text(typed))
			}
		}
	}
}

// nth returns the nth value of a field name, or "" if there are fewer.
func (a fileFields) nth(name string, n int) string {
	if n < len(a[name]) {
		return a[name][n]
	}
	return ""
}

// references returns a list's files with their alt texts and focal points.
func (a fileFields) references(list string, ids []string) []v1alpha1.MediaReference {
	out, used := make([]v1alpha1.MediaReference, 0, len(ids)), map[string]int{}
	for _, id := range ids {
		of := func(kind string) string { return a.nth(fieldName(kind, list, id), used[id]) }
		out = append(out, v1alpha1.MediaReference{Name: id, AltText: of(kindAlt), FocalPoint: focalPoint(of(kindFocusX), of(kindFocusY))})
		used[id]++
	}
	return out
}

func fieldsOfFiles(spec *v1alpha1.PostSpec) fileFields {
	a := fileFields{}
	add := func(list string, refs ...v1alpha1.MediaReference) {
		for _, ref := range refs {
			x, y := coordinates(ref.FocalPoint)
			for kind, value := range map[string]string{kindAlt: ref.AltText, kindFocusX: x, kindFocusY: y} {
				name := fieldName(kind, list, ref.Name)
				a[name] = append(a[name], value)
			}
		}
	}
	switch {
	case spec.Image != nil:
		add("image", spec.Image.MediaRefs...)
	case spec.Video != nil:
		add("video", spec.Video.MediaRef)
	case spec.Tree != nil:
		for i := range spec.Tree.Cards {
			add("media-"+strconv.Itoa(i), spec.Tree.Cards[i].MediaRefs...)
		}
	}
	return a
}

// altField is the field for a file's alt text, with a reminder while it is empty. For a file that has not been uploaded
// yet, the page's script sets the names. ofFile is the file's own alt text, which applies while the field is empty.
func altField(name, altText, file, ofFile string) g.Node {
	return h.Label(h.Class("alt"), g.Text("Alt text"),
		g.If(ofFile == "", h.Span(h.Class("soft"), g.Text("Not described yet. People who cannot see it depend on this."))),
		h.Textarea(g.If(name != "", h.Name(name)), h.Data("of", kindAlt), h.Aria("label", strings.TrimSpace("Alt text of "+file)), h.Dir("auto"), h.Rows("2"),
			h.MaxLength(strconv.Itoa(v1alpha1.MaxAltText)), h.Placeholder(cmp.Or(ofFile, "Describe what it shows")), typed(altText)))
}

// shownFiles shows all of a post's files, and their alt texts.
func (s *Site) shownFiles(v *visit, files []v1alpha1.MediaReference) g.Node {
	thumbs := s.thumbs(v, files, allFiles)
	described := slices.Clone(files)
	for i := range described {
		described[i].AltText = cmp.Or(described[i].AltText, v.pictures.found[described[i].Name].AltText)
	}
	described = slices.DeleteFunc(described, func(f v1alpha1.MediaReference) bool { return f.AltText == "" })
	return g.Group{thumbs, g.If(len(described) > 0, h.Dl(h.Class("alts"), g.Map(described, func(f v1alpha1.MediaReference) g.Node {
		return g.Group{h.Dt(g.Text("Alt text of " + cmp.Or(v.pictures.found[f.Name].FileName, f.Name))), h.Dd(h.Dir("auto"), g.Text(f.AltText))}
	})))}
}
