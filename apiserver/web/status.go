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

// displayStatus is how a post, or one of its targets, stands: in a word, and in a class for styles.
type displayStatus struct{ class, word string }

// Standings that no phase has.
var (
	needsAnswer = displayStatus{string(stateUndecided), "Needs your answer"}
	// notKnown is for a post that has left the cluster, about which no answer is taken any more.
	notKnown          = displayStatus{string(stateUndecided), "Not known"}
	waitsForAnAccount = displayStatus{"waiting", "Waiting for an account"}
)

// stateUndecided narrows lists to the posts that need an answer. It is no phase.
const stateUndecided v1alpha1.PostPhase = "undecided"

// displayStatusOf is how a post stands. Its phase is failed while a person is asked about it, when a part of its targets failed, and processing while
// it waits for an account.
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

// targetStatusOf is how one target of a post stands.
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

// badge shows how something stands.
func (s displayStatus) badge() g.Node { return h.Span(h.Class("badge is-"+s.class), g.Text(s.word)) }

// signs say on the chip of a platform what became of a target there. A target that goes its way has none.
var signs = map[string]string{
	string(v1alpha1.PhasePosted): "✓", string(v1alpha1.PhaseFailed): "✕", string(stateUndecided): "?", waitsForAnAccount.class: "!",
}

// chips are the marks of the accounts that a post goes to, each with what became of it there. Accounts of one platform that stand alike
// share one.
func chips(p *postindex.Summary) g.Node {
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
		return h.Span(h.Class("chip on-"+string(a.Platform)), h.Title(label), h.Role("img"), h.Aria("label", label), g.Text(letters[a.Platform]),
			g.If(sign != "", h.I(h.Class("is-"+of.class), g.Text(sign))))
	})
}
