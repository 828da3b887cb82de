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

// standing is how a post, or one of its targets, stands: in a word, and in a class for styles.
type standing struct{ class, word string }

// Standings that no phase has.
var (
	needsAnswer = standing{string(stateUndecided), "Needs your answer"}
	// notKnown is for a post that has left the cluster, about which no answer is taken any more.
	notKnown          = standing{string(stateUndecided), "Not known"}
	waitsForAnAccount = standing{"waiting", "Waiting for an account"}
)

// stateUndecided narrows lists to the posts that need an answer. It is no phase.
const stateUndecided v1alpha1.PostPhase = "undecided"

// standingOf is how a post stands. Its phase is failed while a person is asked about it, when a part of its targets failed, and processing while
// it waits for an account.
func standingOf(p *postindex.Summary) standing {
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
		return standing{"partly", fmt.Sprintf("Partly posted (%d of %d)", posted, len(p.Platforms))}
	default:
		return standing{string(p.Status), phases[p.Status]}
	}
}

// standingOfTarget is how one target of a post stands.
func standingOfTarget(t postindex.PlatformStatus, archived bool) standing {
	switch {
	case t.Mark == v1alpha1.MarkUndecided && archived:
		return notKnown
	case t.Mark == v1alpha1.MarkUndecided:
		return needsAnswer
	case t.Mark == v1alpha1.MarkWaiting:
		return standing{waitsForAnAccount.class, "Waiting for the account"}
	default:
		return standing{string(t.Status), phases[t.Status]}
	}
}

// badge shows how something stands.
func (s standing) badge() g.Node { return h.Span(h.Class("badge is-"+s.class), g.Text(s.word)) }

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
		of := standingOfTarget(a.PlatformStatus, p.Archived)
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
