// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// unhandledFor is how long a failed post counts as needing a user, unless it is handled earlier.
const unhandledFor = 7 * 24 * time.Hour

func (v *visit) unhandledSince() time.Time {
	return v.now.Add(-unhandledFor).Truncate(time.Millisecond)
}

// unhandled counts the recently failed posts that need a user.
func (s *Site) unhandled(v *visit) int {
	q := filters{status: stateUnhandled}.search(v)
	q.Limit = 1
	found, _ := s.Service.Index.Find(v.namespace, q, nil)
	return found.Total
}

// isUnhandled reports whether unhandled counts a post.
func (v *visit) isUnhandled(p *postindex.Summary) bool {
	return p.Status == v1alpha1.PhaseFailed && !p.Handled && !p.Archived && displayStatusOf(p) != needsAnswer && !p.DisplayAt.Before(v.unhandledSince())
}

// needing returns how many of the team's posts and accounts need a user: posts with an unknown outcome, recently failed
// posts, and accounts with problems that do not resolve themselves. The overview lists them. The outcome of an archived
// post can no longer be resolved, so it does not count.
func (s *Site) needing(v *visit) int {
	counts := s.Service.Index.Counts(v.namespace)
	n := counts.AllUndecided() + s.unhandled(v)
	for _, account := range s.accounts(v) {
		if stateOf(account, v.now).person {
			n++
		}
	}
	return n
}

// maxNeeding is the largest number that pages show exactly.
const maxNeeding = 99

func needingText(n int) string {
	if n > maxNeeding {
		return strconv.Itoa(maxNeeding) + "+"
	}
	return strconv.Itoa(n)
}

// needingBadge is the number next to the overview in the navigation.
func needingBadge(n int) g.Node {
	verb := " need attention"
	if n == 1 {
		verb = " needs attention"
	}
	return g.If(n > 0, h.Span(h.Class("needing"), g.Text(needingText(n)), h.Span(h.Class("hidden"), g.Text(verb))))
}

// needingPrefix is the number before a page's title in the browser tab.
func needingPrefix(n int) string {
	if n == 0 {
		return ""
	}
	return "(" + needingText(n) + ") "
}

// dismiss records that a failed post no longer needs a user.
func (s *Site) dismiss(w http.ResponseWriter, v *visit) error {
	if _, err := s.readForm(w, v); err != nil {
		return err
	}
	id := v.PathValue("id")
	if err := s.Service.Dismiss(v.Context(), v.caller, id); err != nil {
		return err
	}
	page := "posts/" + id
	if localPath(v.PostForm.Get("back"), v.path("")) != "" {
		page = ""
	}
	v.redirect(w, page, wordDismissed)
	return nil
}

// dismissForm is the button to dismiss a failed post. back is the overview's address, or empty for the post's page.
func (v *visit) dismissForm(id, about, back string) g.Node {
	return form(v.path("posts/"+id+"/dismiss"), "", g.If(back != "", hidden("back", back)),
		h.Button(h.Type("submit"), h.Class("button small"), g.Text("Dismiss"), g.If(about != "", h.Span(h.Class("hidden"), g.Text(": "+about)))))
}
