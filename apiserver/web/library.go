// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/request"
)

const (
	// filesPerPage is the number of files on a page, and filesToChoose in a post's form.
	filesPerPage, filesToChoose = 48, 24
	libraryID                   = "library"
	paramFile                   = "file"
)

// lastOf returns the last value, or nothing. In a form without scripts, the video that a user chooses comes after the
// current one.
func lastOf(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// fileSearch returns the search in a page's address.
func fileSearch(query url.Values) (q bridge.FileSearch, page int) {
	page, _ = strconv.Atoi(query.Get("page"))
	page = min(max(page, 1), 1000)
	q = bridge.FileSearch{Words: query.Get("q"), Offset: (page - 1) * filesPerPage, Limit: filesPerPage}
	if types := query.Get("types"); types != "" {
		q.Types = typesOf(types)
	}
	return q, page
}

func typesOf(list string) (types []v1alpha1.MimeType) {
	for one := range strings.SplitSeq(list, ",") {
		types = append(types, v1alpha1.MimeType(one))
	}
	return types
}

// filesPage shows the team's files, from which a user can start a post. It works without scripts.
func (s *Site) filesPage(w http.ResponseWriter, v *visit) error {
	q, page := fileSearch(v.URL.Query())
	found, err := s.Service.FindFiles(v.Context(), v.caller, q)
	if err != nil {
		return err
	}
	content := []g.Node{
		h.P(h.Class("soft"), g.Text("The files of the team's posts. A file that no post uses is deleted after a day, unless your administrators chose another time.")),
		h.Form(h.Class("search"), h.Method("get"), h.Action(v.path("files")), h.Role("search"),
			h.Div(h.Class("field"), h.Label(h.For("q"), g.Text("File name")), h.Input(h.Type("search"), h.ID("q"), h.Name("q"), h.Value(q.Words), h.AutoComplete("off"))),
			submit("Search", "")),
	}
	if len(found.Files) == 0 {
		content = append(content, empty("No files", "Files appear here once they are uploaded for a post."))
	} else {
		content = append(content, h.Form(h.Method("get"), h.Action(v.path("posts/new")), h.Class("card"),
			v.fileBoxes(&found, paramFile, false, ""),
			v.filePages(&found, q.Words, page),
			g.If(v.may.compose(), h.Div(h.Class("actions"), submit("Use in a new post", "primary")))))
	}
	s.render(w, v, http.StatusOK, view{title: "Files", place: placePosts, wide: true, content: content})
	return nil
}

// toFiles is the link to the team's files.
func (v *visit) toFiles() []g.Node {
	if !v.may.seeFiles {
		return nil
	}
	return []g.Node{link(v.path("files"), "Files", "")}
}

// fileList is the list of files in the form's dialog.
func (s *Site) fileList(w http.ResponseWriter, v *visit) error {
	q, _ := fileSearch(v.URL.Query())
	q.Limit = filesToChoose
	found, err := s.Service.FindFiles(v.Context(), v.caller, q)
	if err != nil {
		return err
	}
	s.write(w, http.StatusOK, v.fileBoxes(&found, paramFile, v.URL.Query().Get("one") != "", "pick-"))
	return nil
}

// libraryDialog is the dialog for selecting stored files for the form. The page's script opens it.
func libraryDialog(v *visit) g.Node {
	return h.Dialog(h.ID(libraryID), h.Class("library"), h.Aria("labelledby", "library-title"),
		h.H2(h.ID("library-title"), g.Text("The team's files")),
		hidden("types", ""), hidden("one", ""),
		h.P(h.Class("field"), h.Label(h.For("library-q"), g.Text("File name")),
			h.Input(h.Type("search"), h.ID("library-q"), h.Name("q"), h.AutoComplete("off"), g.Attr("hx-get", v.path("files/list")), g.Attr("hx-include", "#"+libraryID),
				g.Attr("hx-target", "#library-list"), g.Attr("hx-trigger", "input changed delay:300ms, open"), g.Attr("hx-sync", "this:replace"))),
		h.Form(h.Method("dialog"),
			h.Div(h.ID("library-list"), h.TabIndex("0"), h.Role("group"), h.Aria("labelledby", "library-title")),
			h.Div(h.Class("actions"),
				h.Button(h.Class("button primary"), h.Value("add"), g.Text("Add to the post")), h.Button(h.Class("button quiet"), h.Value(""), g.Text("Cancel")))))
}

// fileChoices lists the team's files in the form, for a browser without scripts.
func (s *Site) fileChoices(v *visit, f *fileField) g.Node {
	found, err := s.Service.FindFiles(v.Context(), v.caller, bridge.FileSearch{Types: typesOf(f.types), Limit: filesToChoose})
	if err != nil {
		request.From(v.Context()).Err = err
		return notice(bad, h.P(g.Text("The team's files cannot be listed at the moment. Try again in a minute.")))
	}
	found.Files = slices.DeleteFunc(found.Files, func(file bridge.LibraryFile) bool {
		return slices.ContainsFunc(f.files, func(of v1alpha1.MediaReference) bool { return of.Name == file.ID })
	})
	return h.FieldSet(h.Legend(g.Text("The team's files")), v.fileBoxes(&found, f.name, !f.many, f.name+"-"))
}

// fileBoxes are the checkboxes for choosing files, or radio buttons if only one can be chosen.
func (v *visit) fileBoxes(found *bridge.Library, name string, one bool, prefix string) g.Node {
	kind := "checkbox"
	if one {
		kind = "radio"
	}
	if len(found.Files) == 0 {
		return h.P(h.Class("soft"), g.Text("No file fits."))
	}
	return g.Group{
		h.Ul(h.Class("choices"), g.Map(found.Files, func(file bridge.LibraryFile) g.Node {
			id := prefix + file.ID
			return h.Li(
				h.Input(h.Type(kind), h.ID(id), h.Name(name), h.Value(file.ID), g.If(file.AltText != "", h.Data("alt", file.AltText))),
				h.Label(h.For(id), fileTile(&file), h.Span(h.Data("name", ""), h.Title(file.FileName), g.Text(file.FileName)), h.Span(h.Class("soft"), g.Text(fileFacts(&file)+", "), v.moment(file.UploadedAt))))
		})),
		g.If(found.Found > len(found.Files), h.P(h.Class("soft"), g.Text(strconv.Itoa(len(found.Files))+" of "+plural(found.Found, "file")+", the newest first"))),
		g.If(found.Partial, h.P(h.Class("soft"), g.Text("The team has more files than can be searched here."))),
	}
}

func isPicture(mimeType v1alpha1.MimeType) bool { return strings.HasPrefix(string(mimeType), "image/") }

func fileTile(file *bridge.LibraryFile) g.Node {
	if file.Thumbnail != "" {
		return h.Img(h.Src(file.Thumbnail), h.Alt(""), h.Loading("lazy"))
	}
	icon := "image"
	if !isPicture(file.MimeType) {
		icon = "film"
	}
	return h.Span(h.Class("no-picture"), drawing(icon))
}

// fileFacts are a file's size in pixels, or a video's duration.
func fileFacts(file *bridge.LibraryFile) string {
	if file.Duration > 0 {
		seconds := int(file.Duration.Seconds() + 0.5)
		return strconv.Itoa(seconds/60) + ":" + strconv.Itoa(seconds%60/10) + strconv.Itoa(seconds%10)
	}
	return strconv.Itoa(int(file.Width)) + " × " + strconv.Itoa(int(file.Height))
}

// filePages are the links to the pages with newer and older files.
func (v *visit) filePages(found *bridge.Library, words string, page int) g.Node {
	to := func(page int, label string) g.Node {
		return link(v.path("files")+"?"+url.Values{"q": {words}, "page": {strconv.Itoa(page)}}.Encode(), label, "small")
	}
	return h.Div(h.Class("actions"), g.If(page > 1, to(page-1, "Newer files")), g.If(page*filesPerPage < found.Found, to(page+1, "Older files")))
}

// attach adds the team's files with the given names to a new post: pictures, one video, or the first part of a thread
// with both.
func (c *composer) attach(of *bridge.Previews, v *visit, names []string) {
	var found []string
	videos := 0
	for _, name := range names[:min(len(names), maxMedia)] {
		preview, err := of.Of(v.Context(), name)
		if err != nil || preview.URL == "" {
			continue // it has been deleted since the list was shown
		}
		found = append(found, name)
		if !isPicture(preview.MimeType) {
			videos++
		}
	}
	switch {
	case len(found) == 0:
	case videos == 0:
		c.category, c.images = v1alpha1.CategoryImage, found
	case len(found) == 1:
		c.category, c.video = v1alpha1.CategoryVideo, found[0]
	default:
		c.category = v1alpha1.CategoryTree
		c.cards[0].MediaRefs = c.perFile.references("media-0", found)
	}
}
