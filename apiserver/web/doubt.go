// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// state is the badge of a post on its own page. A post counts as failed until a person has said what became of it; the page asks for
// that instead.
func state(post *v1alpha1.Post) g.Node {
	if slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool { return attempt.Undecided(&t) }) {
		return h.Span(h.Class("badge is-undecided"), g.Text("Needs your answer"))
	}
	return badge(posting.PhaseOf(post))
}

// explain says what is in the way of a target. If its outcome is unknown, its message tells how to answer with kubectl. The page has a
// form for the answer, so explain says only what to look for.
func (v *visit) explain(t *v1alpha1.TargetStatus) string {
	if !attempt.Undecided(t) || t.Blocked == nil {
		return sentence(t.Message)
	}
	since := attempt.AmbiguousSince(t)
	if since == nil {
		return sentence(t.Blocked.Problem)
	}
	what, rest := "the post", ""
	if n := len(t.Cards); n > 0 {
		what, rest = "part "+strconv.Itoa(n+1), " The parts before it are online."
	}
	return "It is not known whether " + what + " was published: " + t.Blocked.Problem + "." +
		" Look for a post that was made after " + since.In(v.zone).Format(momentForm) + "." + rest
}
