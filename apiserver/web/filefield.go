// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// The types of files that a user can choose.
const (
	pictureTypes = "image/jpeg,image/png,image/webp"
	videoTypes   = "video/mp4,video/quicktime"
)

// longestName limits the length of a displayed id, because a form may contain any text in its place.
const longestName = 253

// fileField is a field for files, which the page's script uploads.
type fileField struct {
	// name is the name of the form's values, which are the files' ids.
	name, label string
	// types are the accepted MIME types. many allows several files.
	types string
	many  bool
	// kind is the kind of post that shows the field; empty for the parts of a thread. Dropping a suitable file
	// elsewhere on the page selects this kind.
	kind  v1alpha1.Category
	files []v1alpha1.MediaReference
	// focus adds fields for focal points.
	focus bool
	// library also lists the team's files.
	library bool
}

// dropZone is a field for files, with those that have already been uploaded.
func (s *Site) dropZone(v *visit, f *fileField) g.Node {
	return h.FieldSet(h.Class("drop"), h.Data("upload", v.path("media")), h.Data("script", s.assets.path("transfer.js")), h.Data("name", f.name), g.If(f.kind != "", h.Data("kind", "category-"+string(f.kind))), h.Legend(g.Text(f.label)),
		h.Label(h.Class("choose"),
			g.If(v.may.upload, g.Group{g.Text("Choose "), g.If(f.many, g.Text("files")), g.If(!f.many, g.Text("a file")), g.Text(", or paste or drop them anywhere on this page")}),
			g.If(!v.may.upload, g.Text("You are not allowed to upload files for this team")),
			h.Input(h.Type("file"), h.Accept(f.types), g.If(f.many, h.Multiple()), g.If(!v.may.upload, h.Disabled()))),
		h.Ol(h.Data("files", ""), g.Map(f.files, func(of v1alpha1.MediaReference) g.Node { return v.listedFile(s, f, of) })),
		g.If(v.may.seeFiles && !f.library, h.P(h.Button(h.Type("submit"), h.Class("button small"), h.Name("do"), h.Value("library"), h.FormNoValidate(), h.Data("library", ""), g.Text("Choose from the team's files")))),
		g.Iff(v.may.seeFiles && f.library, func() g.Node { return s.fileChoices(v, f) }),
		h.P(h.Role("status"), h.Class("hidden")),
		g.El("template", file(nil, g.Group{altField("", "", "", ""), g.If(f.focus, focusFields("", v1alpha1.MediaReference{}, ""))}, "")),
	)
}

// listedFile is a file in the form, with its preview and its own name. A file that cannot be read is listed under its
// id.
func (v *visit) listedFile(s *Site, f *fileField, of v1alpha1.MediaReference) g.Node {
	thumb := v.thumb(s, of.Name)
	found := v.pictures.found[of.Name]
	name := cmp.Or(found.FileName, strings.ToValidUTF8(of.Name[:min(len(of.Name), longestName)], ""))
	return file(thumb, g.Group{
		hidden(f.name, of.Name), altField(fieldName(kindAlt, f.name, of.Name), of.AltText, name, found.AltText), g.If(f.focus, focusFields(f.name, of, name)),
	}, name)
}

// file is a file's tile, with the fields for its id and its alt text. Without a name it is the template for the page's
// script.
func file(preview, fields g.Node, name string) g.Node {
	of := func(what string) g.Node { return g.If(name != "", h.Aria("label", what+" "+name)) }
	arrow := func(way, icon, what string) g.Node {
		return h.Button(h.Type("button"), h.Class("button small quiet"), h.Data("move", way), of(what), h.Title(what), drawing(icon), h.Span(h.Class("hidden"), g.Text(what)))
	}
	return h.Li(h.Span(h.Data("preview", ""), preview), h.Span(h.Data("file", ""), h.Class("soft"), g.If(name != "", h.Title(name)), g.Text(name)), fields,
		g.El("progress", h.Max("1"), g.Attr("hidden")),
		h.P(h.Data("note", "")),
		h.Div(h.Class("actions"),
			arrow("up", "before", "Move earlier"), arrow("down", "after", "Move later"),
			g.If(name == "", h.Button(h.Type("button"), h.Class("button small quiet"), h.Data("crop", ""), g.Attr("hidden"), g.Text("Crop"))),
			h.Button(h.Type("button"), h.Class("button small"), h.Data("retry", ""), g.Attr("hidden"), of("Try again"), g.Text("Try again")),
			h.Button(h.Type("button"), h.Class("button small quiet"), h.Data("remove", ""), of("Remove"), g.Text("Remove"))))
}
