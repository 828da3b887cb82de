// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// broken are the rules that a manager deliberately breaks. TestMutations describes them.
type broken struct {
	blindClaim, retryClaim, sendUnconfirmed, fromCache, otherCheckpoint bool
	sendLate, settleEarly, oneLook, trustListing, lostIsNo              bool
	recordAnyway, blindRecord, otherTarget, forgetPost, forgetResult    bool
	nextCardEarly, alwaysRetry, silent, noWake, noStaleness             bool
	forgetDoubt, forgetName, workIsAbsence, datedLate                   bool
	oneLookAtBrake, honestClaims, forgetEnd, deadlinesStay, countTwice  bool
	deafToRelease, resultsUnheld, believeRefusal, searchLate            bool
	skipOpen, openBlind, openUnconfirmed, openEarly, openUnderBrake     bool
	closeBlind, conflictUnsent, missingUnsent, anyVersion, cancelArmed  bool
	callUnderBrake, believeAbove, freezeUnsent                          bool
}

// decision returns the actions of a manager that breaks rules.
func (b *broken) decision(post *v1alpha1.Post, actions []delivery.Action) []delivery.Action {
	var open []int
	for i := range post.Status.Targets {
		if attempt.IsOpen(post.Status.Targets[i].Attempt) {
			open = append(open, i)
		}
	}
	if len(open) == 0 || len(actions) == 0 {
		return actions
	}
	_, waits := actions[0].(delivery.Wait)
	switch {
	case !waits:
	case b.settleEarly:
		return []delivery.Action{delivery.Lookup{Targets: open}}
	case b.noWake:
		return []delivery.Action{delivery.Wait{}}
	}
	return actions
}

// beyond violates the protocol's assumptions: a listing lags or a call takes longer than declared, in milliseconds, or
// a process starts a call after giving it up.
type beyond struct {
	lag, work int64
	sleeper   bool
}

// mutation is a broken rule and the checks that must detect it.
type mutation struct {
	name   string
	reason string
	change func(*scenario)
	// want are the rules; at least one of them must be violated. It is empty if the rest of the protocol is correct
	// without the broken rule.
	want []Rule
}

func faults(n int, kinds ...fault) func(*scenario) {
	return func(s *scenario) { s.faults, s.kinds = n, append([]fault{}, kinds...) }
}

// mutations break the protocol.
var mutations = []mutation{
	{
		"a claim without its resourceVersion", "two managers claim one after the other, and both send",
		func(s *scenario) { faults(1, stall)(s); s.broken.blindClaim, s.noSchema = true, true },
		[]Rule{I2, I3},
	},
	{
		"a claim without its resourceVersion, under the schema", "the schema is the second line",
		func(s *scenario) { faults(1, stall)(s); s.broken.blindClaim = true },
		[]Rule{Schema},
	},
	{
		"a claim tried again after a conflict", "what conflicted may have been a cancel",
		func(s *scenario) { faults(0)(s); s.cancels, s.broken.retryClaim = true, true },
		[]Rule{I1},
	},
	{
		"a call after a claim without an answer", "the process does not know that the claim is stored",
		func(s *scenario) { faults(1, writeLost)(s); s.broken.sendUnconfirmed = true },
		[]Rule{I1},
	},
	{
		"a call made of what was read before an edit", "what is claimed is not what is sent",
		func(s *scenario) { faults(0)(s); s.edits, s.broken.fromCache = true, true },
		[]Rule{I1},
	},
	{
		"a container that was made before an edit", "it holds other words than the post",
		func(s *scenario) {
			faults(1, stall)(s)
			s.containers, s.edits, s.broken.otherCheckpoint = true, true, true
		},
		[]Rule{I1},
	},
	{
		"a call after its window", "others may have settled it by then",
		func(s *scenario) { faults(1, stall)(s); s.broken.sendLate = true },
		[]Rule{I5},
	},
	{
		"a look before the call is over", "what is not there yet is taken for absent",
		func(s *scenario) { faults(1, stall)(s); s.broken.settleEarly = true },
		[]Rule{I5},
	},
	{
		"one lookup instead of two", "an answer counts from when it was asked for: one that is entered late proves nothing",
		func(s *scenario) { faults(2, stall, answerLost)(s); s.alone, s.broken.oneLook = true, true },
		nil,
	},
	{
		"an answer that counts from when it is entered", "the second lookup is asked after the first was entered",
		func(s *scenario) { faults(2, stall, answerLost)(s); s.alone, s.broken.datedLate = true, true },
		nil,
	},
	{
		"one lookup, whose answer counts from when it is entered", "it may have been asked before absence counts, and be entered after",
		func(s *scenario) {
			faults(2, stall, answerLost)(s)
			s.alone, s.broken.oneLook, s.broken.datedLate = true, true, true
		},
		[]Rule{I3},
	},
	{
		"a listing believed that proves nothing", "a post that it never shows is sent again",
		func(s *scenario) { faults(1, answerLost)(s); s.listing, s.broken.trustListing = unreliable, true },
		[]Rule{I3},
	},
	{
		"a lost answer taken for a refusal", "it may be out there",
		func(s *scenario) { faults(1, answerLost)(s); s.broken.lostIsNo = true },
		[]Rule{I3},
	},
	{
		"a result recorded whatever the attempt", "a refusal of the first closes the second, which is on its way",
		func(s *scenario) { faults(3, busy, stall)(s); s.broken.recordAnyway = true },
		[]Rule{I3},
	},
	{
		"a record without its resourceVersion", "it undoes what was written meanwhile",
		func(s *scenario) { faults(2, stall, answerLost)(s); s.broken.blindRecord, s.noSchema = true, true },
		[]Rule{I2, I3, I4},
	},
	{
		"a result entered for another target", "that one's call may still be under way",
		func(s *scenario) { faults(0)(s); s.targets, s.broken.otherTarget = 2, true },
		[]Rule{I4, I7},
	},
	{
		"a published id that is not written", "nobody learns where it is",
		func(s *scenario) { faults(0)(s); s.broken.forgetPost = true },
		[]Rule{I4},
	},
	{
		"a result forgotten when it cannot be written", "the process could have kept it",
		func(s *scenario) { faults(1, writeLost)(s); s.broken.forgetResult = true },
		[]Rule{I4},
	},
	{
		"a name forgotten by which the platform can be asked", "nobody learns what became of the call",
		func(s *scenario) { faults(0)(s); s.listing, s.works, s.broken.forgetName = unreliable, true, true },
		[]Rule{I4},
	},
	{
		"what the platform works on taken for absent", "it is sent again, and both are published",
		func(s *scenario) {
			faults(1, endless)(s)
			s.listing, s.works, s.broken.workIsAbsence = unreliable, true, true
		},
		[]Rule{I3},
	},
	{
		"a refusal believed of what the platform took all the same", "it is sent again, and both are published",
		func(s *scenario) {
			faults(2, lies, endless)(s)
			s.listing, s.works, s.tells, s.broken.workIsAbsence = unreliable, true, true, true
		},
		[]Rule{I3, Lost},
	},
	{
		"a refusal for the moment believed", "the platform published and refused, and the call is made again",
		func(s *scenario) { faults(1, lies)(s); s.broken.believeRefusal = true },
		[]Rule{I3, Lost},
	},
	{
		"a search that begins with the latest attempt", "an earlier one was published and refused, and was listed too late",
		func(s *scenario) {
			faults(1, lies)(s)
			s.dedupes, s.beyond.lag, s.broken.searchLate = true, late, true
		},
		[]Rule{Lost},
	},
	{
		"the next card before the last is recorded", "a crash loses which card is out there",
		func(s *scenario) { faults(0)(s); s.cards, s.broken.nextCardEarly, s.noSchema = 2, true, true },
		[]Rule{I3},
	},
	{
		"sending again in doubt, unasked", "only the owner of the post may allow that",
		func(s *scenario) { faults(1, answerLost)(s); s.listing, s.broken.alwaysRetry = unreliable, true },
		[]Rule{I6},
	},
	{
		"an unknown outcome without a word", "nobody knows what to do",
		func(s *scenario) { faults(1, answerLost)(s); s.listing, s.broken.silent = unreliable, true },
		[]Rule{I6},
	},
	{
		"a call in doubt forgotten with the next one", "the next is refused, and nobody looks for the first",
		func(s *scenario) {
			faults(2, answerLost, refusal)(s)
			s.listing, s.policy, s.broken.forgetDoubt = unreliable, v1alpha1.OnUnknownRetry, true
		},
		[]Rule{I6},
	},
	{
		"nobody comes back for a lost answer", "the post stays where it is",
		func(s *scenario) { faults(1, answerLost)(s); s.broken.noWake = true },
		[]Rule{Lost},
	},
	{
		"no check whether the cache is behind", "it spares a conflict: the resourceVersion protects",
		func(s *scenario) { faults(2, stale, answerLost, writeLost)(s); s.broken.noStaleness = true },
		nil,
	},
	{
		"a listing that lags more than it declares", "the protocol rests on it",
		func(s *scenario) { faults(1, answerLost)(s); s.beyond.lag = 5000 },
		[]Rule{I3},
	},
	{
		"a platform that works on a call for longer than it declares", "the protocol rests on it",
		func(s *scenario) { faults(1, answerLost)(s); s.beyond.work = 5000 },
		[]Rule{I3},
	},
	{
		"clocks that differ by more than the margin", "the protocol rests on it",
		func(s *scenario) {
			faults(2, stall, crash)(s)
			s.clocks = [][managers]int64{{0, 4 * margin}}
		},
		[]Rule{I3, I5},
	},
	{
		"a process that sleeps through the limit of its call and then begins it", "the protocol rests on it",
		func(s *scenario) { faults(1, stall)(s); s.beyond.sleeper = true },
		[]Rule{I3},
	},
}

// brakeMutations break suspension rules. want is Brake, or Lost.
var brakeMutations = []mutation{
	{
		"a claim without a last look at the brake", "it was pulled after the pass had begun",
		func(s *scenario) { faults(0)(s); s.broken.oneLookAtBrake = true },
		[]Rule{Brake},
	},
	{
		"the next card claimed with a record without a look at the brake", "as above",
		func(s *scenario) {
			faults(0)(s)
			s.cards, s.chained, s.broken.oneLookAtBrake, s.broken.honestClaims = 2, true, true, true
		},
		[]Rule{Brake},
	},
	{
		"a brake that is released before its end is entered", "the post is claimed, or given up, before its deadline has moved",
		func(s *scenario) { faults(0)(s); s.broken.forgetEnd = true },
		[]Rule{Brake},
	},
	{
		"deadlines that do not move", "what was held is given up",
		func(s *scenario) { faults(0)(s); s.broken.deadlinesStay = true },
		[]Rule{Brake},
	},
	{
		"the end of a call entered without the brake", "it is given up for a deadline that is about to move",
		func(s *scenario) { faults(1, stall)(s); s.alone, s.broken.resultsUnheld = true, true },
		[]Rule{Brake},
	},
	{
		"a suspension that moves a deadline again and again", "it is sent when nobody expects it any more",
		func(s *scenario) { faults(2, busy, stall)(s); s.alone, s.broken.countTwice = true, true },
		[]Rule{Brake},
	},
	{
		"an end of the suspension that wakes nobody", "the post stays where it is",
		func(s *scenario) { faults(0)(s); s.broken.deafToRelease = true },
		[]Rule{Lost},
	},
}

// TestBrakeMutations is TestMutations for a suspended team.
func TestBrakeMutations(t *testing.T) {
	for _, m := range brakeMutations {
		t.Run(m.name, func(t *testing.T) { m.try(t, braked(m.name, m.change)) })
	}
}

// TestArmMutations is TestMutations for a post of a crowd.
func TestArmMutations(t *testing.T) {
	for _, m := range armMutations {
		t.Run(m.name, func(t *testing.T) { m.try(t, crowded(m.name, m.change)) })
	}
}

// TestMutations checks that the invariants detect each mutation. With -v it prints how.
func TestMutations(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			m.try(t, text(m.name, func(s *scenario) { s.policy = v1alpha1.OnUnknownFail; m.change(s) }))
		})
	}
}

// try explores a scenario with the mutation.
func (m *mutation) try(t *testing.T, s scenario) {
	r := explore(s)
	switch {
	case r.violation == nil && m.want != nil:
		t.Errorf("nobody noticed (%s); want one of %v: %s", m.reason, m.want, r)
	case r.violation != nil && !slices.Contains(m.want, r.violation.rule):
		t.Errorf("%s: %s; want one of %v (%s)\n%s", r.violation.rule, r.violation.why, m.want, m.reason, strings.Join(r.trace, "\n"))
	case r.violation != nil:
		t.Logf("%s: %s, seen after %s\n%s", r.violation.rule, r.violation.why, r, strings.Join(r.trace, "\n"))
	default:
		t.Logf("nothing to notice (%s): %s", m.reason, r)
	}
}
