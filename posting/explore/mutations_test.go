// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// broken selects the rules that a manager deliberately breaks. TestMutations describes them.
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
	otherKey, doubtKeyed                                                bool
	unheld, startUnheld, anyHolder, silentHolder, endlessHold           bool
	blindNotes, trustPart, deafLoser                                    bool
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
// a process starts a call after giving up on it.
type beyond struct {
	lag, work int64
	sleeper   bool
}

// mutation is a broken rule and the checks that must detect it.
type mutation struct {
	name   string
	reason string
	change func(*scenario)
	// want lists rules of which at least one must be violated. It is empty if the rest of the protocol is correct without
	// the broken rule.
	want []Rule
}

func faults(n int, kinds ...fault) func(*scenario) {
	return func(s *scenario) { s.faults, s.kinds = n, append([]fault{}, kinds...) }
}

// mutations break the protocol.
var mutations = []mutation{
	{
		"a claim without its resourceVersion", "two managers claim concurrently, and both send",
		func(s *scenario) { faults(1, stall)(s); s.broken.blindClaim, s.noSchema = true, true },
		[]Rule{I2, I3},
	},
	{
		"a claim without its resourceVersion, under the schema", "the schema is the second line",
		func(s *scenario) { faults(1, stall)(s); s.broken.blindClaim = true },
		[]Rule{Schema},
	},
	{
		"a claim retried after a conflict", "the conflicting write may be a cancellation",
		func(s *scenario) { faults(0)(s); s.cancels, s.broken.retryClaim = true, true },
		[]Rule{I1},
	},
	{
		"a call after a claim without a response", "the process does not know that the claim is stored",
		func(s *scenario) { faults(1, writeLost)(s); s.broken.sendUnconfirmed = true },
		[]Rule{I1},
	},
	{
		"a call with content from before an edit", "the sent content differs from the claimed content",
		func(s *scenario) { faults(0)(s); s.edits, s.broken.fromCache = true, true },
		[]Rule{I1},
	},
	{
		"a container from before an edit", "the container contains the text from before the edit",
		func(s *scenario) {
			faults(1, stall)(s)
			s.containers, s.edits, s.broken.otherCheckpoint = true, true, true
		},
		[]Rule{I1},
	},
	{
		"a call after its window", "another manager may have settled it by then",
		func(s *scenario) { faults(1, stall)(s); s.broken.sendLate = true },
		[]Rule{I5},
	},
	{
		"a lookup before the call is over", "a post that is not listed yet counts as absent",
		func(s *scenario) { faults(1, stall)(s); s.broken.settleEarly = true },
		[]Rule{I5},
	},
	{
		"one lookup instead of two", "a lookup counts from its request: a late record is not proof",
		func(s *scenario) { faults(2, stall, answerLost)(s); s.alone, s.broken.oneLook = true, true },
		nil,
	},
	{
		"a lookup that counts from its recording", "the second lookup is requested after the first was recorded",
		func(s *scenario) { faults(2, stall, answerLost)(s); s.alone, s.broken.datedLate = true, true },
		nil,
	},
	{
		"one lookup, counted from its recording", "the lookup may be requested before absence counts, and recorded afterwards",
		func(s *scenario) {
			faults(2, stall, answerLost)(s)
			s.alone, s.broken.oneLook, s.broken.datedLate = true, true, true
		},
		[]Rule{I3},
	},
	{
		"a listing that is not authoritative counts as proof", "a post that it never lists is sent again",
		func(s *scenario) { faults(1, answerLost)(s); s.listing, s.broken.trustListing = unreliable, true },
		[]Rule{I3},
	},
	{
		"a lost response counts as a rejection", "the post may be published",
		func(s *scenario) { faults(1, answerLost)(s); s.broken.lostIsNo = true },
		[]Rule{I3},
	},
	{
		"a result recorded for any attempt", "a rejection of the first closes the second, which is in progress",
		func(s *scenario) { faults(3, busy, stall)(s); s.broken.recordAnyway = true },
		[]Rule{I3},
	},
	{
		"a record without its resourceVersion", "the write overwrites concurrent ones",
		func(s *scenario) { faults(2, stall, answerLost)(s); s.broken.blindRecord, s.noSchema = true, true },
		[]Rule{I2, I3, I4},
	},
	{
		"a result entered for another target", "the other target's call may still be in progress",
		func(s *scenario) { faults(0)(s); s.targets, s.broken.otherTarget = 2, true },
		[]Rule{I4, I7},
	},
	{
		"a published id that is not written", "its publication remains unknown",
		func(s *scenario) { faults(0)(s); s.broken.forgetPost = true },
		[]Rule{I4},
	},
	{
		"a result dropped when it cannot be written", "the process could have kept it",
		func(s *scenario) { faults(1, writeLost)(s); s.broken.forgetResult = true },
		[]Rule{I4},
	},
	{
		"a dropped operation id", "the call can no longer be looked up",
		func(s *scenario) { faults(0)(s); s.listing, s.works, s.broken.forgetName = unreliable, true, true },
		[]Rule{I4},
	},
	{
		"an accepted call counts as absent", "the target is sent again, and both posts are published",
		func(s *scenario) {
			faults(1, endless)(s)
			s.listing, s.works, s.broken.workIsAbsence = unreliable, true, true
		},
		[]Rule{I3},
	},
	{
		"a rejection of an accepted call counts as final", "the target is sent again, and both posts are published",
		func(s *scenario) {
			faults(2, lies, endless)(s)
			s.listing, s.works, s.tells, s.broken.workIsAbsence = unreliable, true, true, true
		},
		[]Rule{I3, Lost},
	},
	{
		"a temporary rejection counts as final", "the platform published and rejected it, and the call is repeated",
		func(s *scenario) { faults(1, lies)(s); s.broken.believeRefusal = true },
		[]Rule{I3, Lost},
	},
	{
		"a search that starts with the latest attempt", "an earlier one was published and rejected, and was listed late",
		func(s *scenario) {
			faults(1, lies)(s)
			s.dedupes, s.beyond.lag, s.broken.searchLate = true, late, true
		},
		[]Rule{Lost},
	},
	{
		"the next card before the last is recorded", "a crash loses the published card's id",
		func(s *scenario) { faults(0)(s); s.cards, s.broken.nextCardEarly, s.noSchema = 2, true, true },
		[]Rule{I3},
	},
	{
		"resending an unknown call without permission", "only the owner of the post may allow a resend",
		func(s *scenario) { faults(1, answerLost)(s); s.listing, s.broken.alwaysRetry = unreliable, true },
		[]Rule{I6},
	},
	{
		"an unknown outcome without a message", "the user does not know the remedy",
		func(s *scenario) { faults(1, answerLost)(s); s.listing, s.broken.silent = unreliable, true },
		[]Rule{I6},
	},
	{
		"an unknown call dropped for the next one", "K:an unknown call replaced by the next",
		func(s *scenario) {
			faults(2, answerLost, refusal)(s)
			s.listing, s.policy, s.broken.forgetDoubt = unreliable, v1alpha1.OnUnknownRetry, true
		},
		[]Rule{I6},
	},
	{
		"a lost response without a retry", "the post remains in its state",
		func(s *scenario) { faults(1, answerLost)(s); s.broken.noWake = true },
		[]Rule{Lost},
	},
	{
		"no check whether the cache is behind", "the check only spares a conflict: the resourceVersion protects",
		func(s *scenario) { faults(2, stale, answerLost, writeLost)(s); s.broken.noStaleness = true },
		nil,
	},
	{
		"a key that differs by attempt", "the platform works on the first call for longer than it declares, and keeps both posts",
		func(s *scenario) {
			faults(1, answerLost)(s)
			s.listing, s.keyed, s.beyond.work, s.broken.otherKey = unreliable, true, 5000, true
		},
		[]Rule{I3},
	},
	{
		"an idempotent platform treated like any other", "a user is asked after lookups have failed, although a later lookup would settle the call",
		func(s *scenario) {
			faults(3, answerLost, blind)(s)
			s.settings.StartingDeadline = 8 * time.Second
			s.listing, s.keyed, s.broken.doubtKeyed = unreliable, true, true
		},
		[]Rule{I6},
	},
	{
		"a listing that lags more than it declares", "the protocol relies on it",
		func(s *scenario) { faults(1, answerLost)(s); s.beyond.lag = 5000 },
		[]Rule{I3},
	},
	{
		"a platform that works on a call for longer than it declares", "the protocol relies on it",
		func(s *scenario) { faults(1, answerLost)(s); s.beyond.work = 5000 },
		[]Rule{I3},
	},
	{
		"clocks that differ by more than the margin", "the protocol relies on it",
		func(s *scenario) {
			faults(2, stall, crash)(s)
			s.clocks = [][managers]int64{{0, 4 * margin}}
		},
		[]Rule{I3, I5},
	},
	{
		"a process that sleeps past its call's timeout and then starts the call", "the protocol relies on it",
		func(s *scenario) { faults(1, stall)(s); s.beyond.sleeper = true },
		[]Rule{I3},
	},
}

// brakeMutations break suspension rules. want is Brake, or Lost.
var brakeMutations = []mutation{
	{
		"a claim without a last check of the suspension", "the team was suspended after the reconciliation had started",
		func(s *scenario) { faults(0)(s); s.broken.oneLookAtBrake = true },
		[]Rule{Brake},
	},
	{
		"the next card claimed with a record without a check of the suspension", "the team was suspended after the reconciliation had started",
		func(s *scenario) {
			faults(0)(s)
			s.cards, s.chained, s.broken.oneLookAtBrake, s.broken.honestClaims = 2, true, true, true
		},
		[]Rule{Brake},
	},
	{
		"a suspension that is lifted before its end is recorded", "the post is claimed, or fails, before its deadline is extended",
		func(s *scenario) { faults(0)(s); s.broken.forgetEnd = true },
		[]Rule{Brake},
	},
	{
		"deadlines that are not extended", "suspended posts fail",
		func(s *scenario) { faults(0)(s); s.broken.deadlinesStay = true },
		[]Rule{Brake},
	},
	{
		"the end of a call recorded without the suspension", "the target fails at a deadline that is about to be extended",
		func(s *scenario) { faults(1, stall)(s); s.alone, s.broken.resultsUnheld = true, true },
		[]Rule{Brake},
	},
	{
		"a suspension that extends a deadline repeatedly", "the post is sent unexpectedly late",
		func(s *scenario) { faults(2, busy, stall)(s); s.alone, s.broken.countTwice = true, true },
		[]Rule{Brake},
	},
	{
		"an end of the suspension that does not wake posts", "the post remains in its state",
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
		t.Errorf("no invariant detected it (%s); want one of %v: %s", m.reason, m.want, r)
	case r.violation != nil && !slices.Contains(m.want, r.violation.rule):
		t.Errorf("%s: %s; want one of %v (%s)\n%s", r.violation.rule, r.violation.why, m.want, m.reason, strings.Join(r.trace, "\n"))
	case r.violation != nil:
		t.Logf("%s: %s, seen after %s\n%s", r.violation.rule, r.violation.why, r, strings.Join(r.trace, "\n"))
	default:
		t.Logf("no violation (%s): %s", m.reason, r)
	}
}
