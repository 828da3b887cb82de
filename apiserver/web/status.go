// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// displayStatus is the displayed status of a post or one of its targets: a text and a CSS class.
type displayStatus struct{ class, word string }

// Statuses that do not correspond to a phase.
var (
	needsAnswer = displayStatus{string(stateUndecided), "Needs your answer"}
	// notKnown is the status of an archived post with an unknown outcome, which can no longer be resolved.
	notKnown          = displayStatus{string(stateUndecided), "Not known"}
	waitsForAnAccount = displayStatus{"waiting", "Waiting for an account"}
)

// stateUndecided makes lists show only undecided posts. It is not a phase.
const stateUndecided v1alpha1.PostPhase = "undecided"

// stateUnhandled makes lists show only the failed posts that need a user. It is not a phase.
const stateUnhandled v1alpha1.PostPhase = "unhandled"

// stateName returns the label of a state that lists can be filtered by.
func stateName(state v1alpha1.PostPhase) string {
	switch state { //nolint:exhaustive // the others are phases
	case stateUndecided:
		return needsAnswer.word
	case stateUnhandled:
		return "Failed, not handled"
	default:
		return phases[state]
	}
}

// displayStatusOf returns a post's status. It differs from the phase for undecided and partly posted posts, whose phase
// is failed, and for posts waiting for an account, whose phase is processing.
func displayStatusOf(p *postindex.Summary) displayStatus {
	posted, waits := 0, false
	for _, t := range p.Platforms {
		switch {
		case t.Mark == v1alpha1.MarkUndecided && p.Archived:
			return notKnown
		case t.Mark == v1alpha1.MarkUndecided:
			return needsAnswer
		case t.Mark == v1alpha1.MarkWaiting:
			waits = true
		case t.Status == v1alpha1.PhasePosted:
			posted++
		}
	}
	switch {
	case waits && p.Status == v1alpha1.PhaseProcessing:
		return waitsForAnAccount
	case posted > 0 && p.Status == v1alpha1.PhaseFailed:
		return displayStatus{"partly", fmt.Sprintf("Partly posted (%d of %d)", posted, len(p.Platforms))}
	default:
		return displayStatus{string(p.Status), phases[p.Status]}
	}
}

func targetStatusOf(t postindex.PlatformStatus, archived bool) displayStatus {
	switch {
	case t.Mark == v1alpha1.MarkUndecided && archived:
		return notKnown
	case t.Mark == v1alpha1.MarkUndecided:
		return needsAnswer
	case t.Mark == v1alpha1.MarkWaiting:
		return displayStatus{waitsForAnAccount.class, "Waiting for the account"}
	default:
		return displayStatus{string(t.Status), phases[t.Status]}
	}
}

func (s displayStatus) badge() g.Node { return h.Span(h.Class("badge is-"+s.class), g.Text(s.word)) }

// signs are the symbols for a target's status on its platform's chip. A target that is still in progress has none.
var signs = map[string]string{
	string(v1alpha1.PhasePosted): "✓", string(v1alpha1.PhaseFailed): "✕", string(stateUndecided): "?", waitsForAnAccount.class: "!",
}

// chips shows the platform chips of a post's targets. Targets with the same platform and status share one.
func chips(p *postindex.Summary) g.Node { return chipsWith(p, true) }

// chipsWith is like chips, with or without the tooltips, which a calendar with many posts omits.
func chipsWith(p *postindex.Summary, tooltips bool) g.Node {
	type account struct {
		postindex.PlatformStatus

		times int
	}
	var accounts []account
	for _, t := range p.Platforms {
		known := false
		for i := range accounts {
			if accounts[i].PlatformStatus == t {
				accounts[i].times++
				known = true
			}
		}
		if !known {
			accounts = append(accounts, account{t, 1})
		}
	}
	return g.Map(accounts, func(a account) g.Node {
		of := targetStatusOf(a.PlatformStatus, p.Archived)
		label := a.Platform.Title()
		if a.times > 1 {
			label = strconv.Itoa(a.times) + " accounts on " + label
		}
		sign := signs[of.class]
		if sign != "" {
			label += ": " + of.word
		}
		return h.Span(h.Class("chip on-"+string(a.Platform)), g.If(tooltips, h.Title(label)), h.Role("img"), h.Aria("label", label), g.Text(letters[a.Platform]),
			g.If(sign != "", h.I(h.Class("is-"+of.class), g.Text(sign))))
	})
}
