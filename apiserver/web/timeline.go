// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// coming is the tone of a future step.
const coming tone = "next"

// step is an event in a post's life, past or future.
type step struct {
	at   time.Time
	tone tone
	what string
}

func (s *Site) timeline(v *visit, post *v1alpha1.Post) g.Node {
	steps := []step{{posting.Of(post).Created(), neutral, "Created"}}
	for i := range post.Spec.Targets {
		if t := posting.Of(post).Target(i); t != nil {
			steps = append(steps, inOrder(s.stepsOf(v, post, i, t))...)
		}
	}
	if at := post.Spec.ScheduledAt; at != nil && at.After(v.now) {
		steps = append(steps, step{at.Time, coming, "To be published"})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.at.Compare(b.at) })
	return h.Ol(h.Class("timeline"), g.Map(steps, func(of step) g.Node {
		return h.Li(h.Class("is-"+string(of.tone)), v.moment(of.at), h.Span(g.Text(of.what)))
	}))
}

// inOrder makes the times of one target's steps ascending. A platform's clock may be slow, or count only whole seconds,
// so a post can seem to be published before it was sent.
func inOrder(steps []step) []step {
	for i := 1; i < len(steps); i++ {
		if steps[i].at.Before(steps[i-1].at) {
			steps[i].at = steps[i-1].at
		}
	}
	return steps
}

func (s *Site) stepsOf(v *visit, post *v1alpha1.Post, i int, t *v1alpha1.TargetStatus) (steps []step) {
	id := post.Spec.Targets[i].ConnectionRef.Name
	name := v.called(s.account(v, id), id)
	to := s.platformOf(v, post, i).Title() + ", " + name + ": "
	if t.Prepared != nil {
		what := "upload begun"
		if t.Prepared.Complete {
			what = "uploaded in advance"
		}
		steps = append(steps, step{t.Prepared.MadeAt.Time, neutral, to + what})
	}
	calls := callSteps(to, t.Attempt, post.Spec.Tree != nil)
	for c := range t.Cards {
		// Only the latest call is recorded. It may have published the last part.
		if t.Attempt != nil && t.Attempt.Card == t.Cards[c].Index {
			steps, calls = append(steps, calls...), nil
		}
		if at := t.Cards[c].PostedAt; at != nil {
			steps = append(steps, step{at.Time, good, fmt.Sprintf("%spart %d posted", to, t.Cards[c].Index+1)})
		}
	}
	steps = append(steps, calls...)
	if t.PostedAt != nil {
		steps = append(steps, step{t.PostedAt.Time, good, to + "posted"})
	} else if state := posting.StateOf(t); state == v1alpha1.TargetFailed || state == v1alpha1.TargetUndecided {
		at := v.now
		if c := condition(post, v1alpha1.ConditionReady); c != nil {
			at = c.LastTransitionTime.Time
		}
		what, how := strings.TrimSuffix(t.Message, "."), bad
		if state == v1alpha1.TargetUndecided {
			what, how = "it is not known whether it was published; someone must check", caution
		}
		steps = append(steps, step{at, how, to + what})
	}
	return steps
}

// callSteps returns the steps of the latest call. A thread's attempt number counts the parts and is omitted.
func callSteps(to string, a *v1alpha1.Attempt, thread bool) (steps []step) {
	if a == nil {
		return nil
	}
	what := "sent"
	switch {
	case thread:
		what = fmt.Sprintf("part %d sent", a.Card+1)
	case a.Number > 1:
		what = fmt.Sprintf("sent, attempt %d", a.Number)
	}
	steps = append(steps, step{a.StartedAt.Time, neutral, to + what})
	if a.EndedAt != nil {
		waits := step{a.EndedAt.Time, caution, to + "the response was lost; Herald asks the platform and does not send it again"}
		if a.OperationID != "" {
			waits = step{a.EndedAt.Time, neutral, to + "accepted by the platform and being processed"}
		}
		steps = append(steps, waits)
	}
	return steps
}
