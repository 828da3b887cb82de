// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strconv"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
)

// explain returns the text about a target's problem. If the outcome is unknown, the status message describes how to
// answer with kubectl. The page has a form for that, so explain only describes the post to look for.
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
		" Look for a post that was made after " + v.momentText(since.Time) + "." + rest
}
