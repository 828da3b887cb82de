// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/posting"
)

// once marks the form for a new post for compose.js, which submits each form only once: Back, a second tab or a second
// click do not publish again. Forms for posts also have autocomplete off, so that browsers do not fill them in when a
// person navigates back to them (HTML, "autocomplete"); drafts.js preserves unsent text.
func once(v *visit) g.Node { return h.Data("once", v.namespace+" "+v.person.Name) }

// aMoment is how long ago a post may have been sent to count as "a moment ago".
const aMoment = 10 * time.Minute

// justSent shows the post that was sent from this form when a user navigates back to it. It returns nil if id is not
// one of this person's posts.
func (s *Site) justSent(v *visit, id string) g.Node {
	if id == "" {
		return nil
	}
	post, err := s.Service.ReadPost(v.Context(), v.caller, id)
	if err != nil || post.Annotations[v1alpha1.AuthorAnnotation] != v.person.Name {
		return nil // the form works without it
	}
	did := "published"
	switch {
	case post.Spec.Draft:
		did = "saved"
	case post.Spec.ScheduledAt != nil:
		did = "scheduled"
	}
	ago := g.Text("a moment ago")
	if at := posting.Of(post).Created(); v.now.Sub(at) > aMoment {
		ago = v.about(at)
	}
	return h.Div(h.Class("note info"), h.Role("status"), drawing("check"), h.Div(
		h.P(h.Strong(g.Text("You "+did+" this "), ago, g.Text(": ")), g.Text(quoted(s.nameOfPost(v, post))+".")),
		h.P(h.Class("actions"), link(v.path("posts/"+post.Name), "Open it", "small"), link(v.path("posts/new"), "Write another", "small")),
	))
}

// linkToSendAgain links to the form that sends a post again to the one account where it failed.
func (v *visit) linkToSendAgain(post *v1alpha1.Post, target int, platform v1alpha1.Platform) g.Node {
	return h.P(link(v.path("posts/new")+"?from="+post.Name+"&target="+strconv.Itoa(target), "Send again to "+platform.Title(), "small"))
}

// sendAgain fills in the form with a post that failed on one account, for only that account.
func (s *Site) sendAgain(v *visit, form *composer, id, target string) error {
	number, err := strconv.Atoi(target)
	if err != nil {
		return &bridge.Error{Code: bridge.CodeValidation, Message: "the address does not say to which account the post is sent again; open the post and choose Send again there"}
	}
	again, title, err := s.Service.ResendPost(v.Context(), v.caller, id, number)
	if err != nil {
		return err
	}
	form.writing, form.omitted, form.title = writingOf(&again.Spec, v.zone), again.Omitted, "Send again"
	if title == "" {
		title = "the first post"
	}
	form.notice = notice(neutral, h.P(g.Text("This goes only where "), h.A(h.Href(v.path("posts/"+id)), g.Text(quoted(title))), g.Text(" was not published.")))
	return nil
}
