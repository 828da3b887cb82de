// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"math"
	"net/http"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/posting"
)

// undoTime is the time between Publish now and the publication, in which users can take the post back; 0 publishes at
// once.
func (v *visit) undoTime() time.Duration {
	return time.Duration(v.team.Spec.Publishing.UndoSeconds) * time.Second
}

func (v *visit) undoFact() g.Node {
	if v.undoTime() == 0 {
		return fact("Publish now", g.Text("publishes at once"))
	}
	return fact("Publish now", g.Text("waits "+seconds(v.undoTime())+", during which the post can be taken back"))
}

func seconds(d time.Duration) string { return plural(int(math.Ceil(d.Seconds())), "second") }

// undoCountdown counts down to a post's publication, and offers to take it back. It returns nil unless the post is
// going to be published within the team's undo time.
func (s *Site) undoCountdown(v *visit, post *v1alpha1.Post) g.Node {
	at := post.Spec.ScheduledAt
	if at == nil || posting.Of(post).Phase() != v1alpha1.PhaseScheduled {
		return nil
	}
	left := at.Sub(v.now)
	if left <= 0 || left > v.undoTime() {
		return nil
	}
	return notice(neutral,
		h.P(h.Strong(g.Text("This post goes out in "), h.Span(h.Role("timer"), h.Data("countdown", strconv.Itoa(int(math.Ceil(left.Seconds())))), g.Text(seconds(left))), g.Text("."))),
		g.Iff(v.may.update && v.may.compose(), func() g.Node {
			return form(v.path("posts/"+post.Name+"/takeback"), "", h.Button(h.ID("takeback"), h.Type("submit"), h.Class("button"), g.Text("Take back")))
		}))
}

// withdraw cancels a scheduled post. It returns false if it is too late, and true if the post is already canceled.
func (s *Site) withdraw(v *visit, id string) (bool, error) {
	post, err := s.Service.ReadPost(v.Context(), v.caller, id)
	switch {
	case err != nil:
		return false, err
	case post.Spec.Draft:
		return false, &bridge.Error{Code: bridge.CodeConflict, Message: "this post is a draft, so it is not going to be published; there is nothing to take back"}
	}
	refused := s.Service.CancelPost(v.Context(), v.caller, id)
	if known, ok := asError(refused); !ok || known.Code != bridge.CodeConflict {
		return refused == nil, refused
	}
	post, err = s.Service.ReadPost(v.Context(), v.caller, id)
	return err == nil && posting.Of(post).Cancelled(), err
}

// withdrawPublished cancels a post that is about to be published and opens a copy of it as a draft: a post that is not
// a draft cannot become one. Taking it back twice creates only one copy.
func (s *Site) withdrawPublished(w http.ResponseWriter, v *visit) error {
	id := v.PathValue("id")
	switch taken, err := s.withdraw(v, id); {
	case err != nil:
		return err
	case !taken:
		v.redirect(w, "posts/"+id, wordLate)
		return nil
	}
	like, err := s.Service.DuplicatePost(v.Context(), v.caller, id)
	if err != nil {
		return err
	}
	spec := like.Spec
	spec.Draft = true
	made, err := s.Service.CreatePost(v.Context(), v.caller, bridge.CreatePost{Spec: spec, IdempotencyKey: "taken back " + id})
	if err != nil {
		if _, known := asError(err); known {
			// The form shows the problem.
			http.Redirect(w, v.Request, v.path("posts/new")+"?from="+id, http.StatusSeeOther) //nolint:gosec // G710: it is a page of the team
			return nil
		}
		return err
	}
	v.redirect(w, "posts/"+made.ID+"/edit", wordTakenBack)
	return nil
}
