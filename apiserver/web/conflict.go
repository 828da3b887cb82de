// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// fieldOver is the form field with the stored version that a user's own version replaces.
const fieldOver = "over"

// bothVersions shows the stored version of a post that has changed since a user opened it, next to their own, and lets
// them choose.
func (s *Site) bothVersions(v *visit, id string, written *writing) (g.Node, error) {
	stored, err := s.Service.ReadPost(v.Context(), v.caller, id)
	if err != nil {
		return nil, err
	}
	mine := stored.DeepCopy()
	if mine.Spec, err = written.spec(s.platforms(v)); err != nil {
		return nil, err
	}
	by := "in another tab or on another computer"
	if author := stored.Annotations[v1alpha1.LastAuthorAnnotation]; author != "" && author != v.person.Name {
		by = "by " + s.personNamed(v, author)
	}
	return h.Section(h.ID("versions"), h.Class("note warning"), h.Role("alert"), h.Aria("labelledby", "versions-title"), drawing("alert"), h.Div(
		h.H2(h.ID("versions-title"), h.TabIndex("-1"), g.Text("There are two versions of this post")),
		paragraph("It was changed "+by+" while you were writing. Your version is not stored. Choose which one to keep."),
		h.Div(h.Class("versions"),
			s.oneVersion(v, "Yours", mine, h.Button(h.Type("submit"), h.Class("button"), h.Name(fieldOver), h.Value(bridge.Version(stored)), g.Text("Keep mine"))),
			s.oneVersion(v, "Stored", stored, h.A(h.Class("button"), h.Href(v.path("posts/"+stored.Name+"/edit")), h.Data("theirs", ""), g.Text("Use the stored one"))),
		),
	)), nil
}

func (s *Site) oneVersion(v *visit, title string, post *v1alpha1.Post, choose g.Node) g.Node {
	return h.Div(h.H3(g.Text(title)),
		g.Iff(post.Spec.ScheduledAt != nil, func() g.Node { return h.P(g.Text("For "), v.moment(post.Spec.ScheduledAt.Time)) }),
		s.content(v, post), h.P(h.Class("actions"), choose))
}
