// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

// publishCards claims and records the first cards of a three-card tree.
func publishCards(t *testing.T, cards int) *v1alpha1.TargetStatus {
	t.Helper()
	target := &v1alpha1.TargetStatus{State: v1alpha1.TargetPending, TryUntil: timePtr(time.Hour)}
	for i := range cards {
		c := claim(fmt.Sprintf("a%d", i))
		c.Card = int32(i)
		must.Succeed(t, Open(target, c, t0))
		result := platforms.Result{Outcome: platforms.Posted, ExternalID: fmt.Sprintf("id%d", i), ExternalURL: fmt.Sprintf("https://x/id%d", i)}
		must.Succeed(t, Record(target, c.ID, result, 3, at(time.Second)))
	}
	return target
}

func TestCards(t *testing.T) {
	for cards, want := range map[int]v1alpha1.TargetState{1: v1alpha1.TargetPending, 2: v1alpha1.TargetPending, 3: v1alpha1.TargetPosted} {
		target := publishCards(t, cards)
		if target.State != want || int(NextCard(target)) != cards || target.Attempt.Number != int32(cards) {
			t.Errorf("after %d of 3 cards: %+v", cards, target)
		}
		if target.ExternalID != "id0" || target.ExternalURL != "https://x/id0" {
			t.Errorf("a tree's id is its first card's, not %s", target.ExternalID)
		}
		if (target.TryUntil == nil) != (want == v1alpha1.TargetPosted) {
			t.Errorf("after %d of 3 cards it is tried until %v", cards, target.TryUntil)
		}
	}
}

func TestOpenCard(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		published int
		card      int32
		before    func(*v1alpha1.TargetStatus)
		want      error
	}{
		"the next":               {"the card replies to the one before", 1, 1, nil, nil},
		"repeated":               {"the card is published", 1, 0, nil, ErrSettled},
		"one too far":            {"the tree would lack the card between", 1, 2, nil, ErrSettled},
		"behind the last":        {"K:after the last", 3, 3, nil, ErrSettled},
		"not the first at first": {"the tree has no card to reply to", 0, 1, nil, ErrSettled},
		"while one is open":      {"the previous card may not be published", 1, 1, func(t *v1alpha1.TargetStatus) { t.Attempt.Outcome = "" }, ErrOpen},
		"after a refusal":        {"the card may be retried", 1, 1, func(t *v1alpha1.TargetStatus) { refuse(t, 1) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			target := publishCards(t, tc.published)
			if tc.before != nil {
				tc.before(target)
			}
			c := claim("next")
			c.Card = tc.card
			if err := Open(target, c, at(time.Minute)); !errors.Is(err, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}

// refuse adds an attempt for a card that was temporarily refused.
func refuse(t *v1alpha1.TargetStatus, card int32) {
	t.Attempt = &v1alpha1.Attempt{Number: t.Attempt.Number + 1, ID: "r", Card: card, StartedAt: v1alpha1.NewTime(t0), Outcome: v1alpha1.OutcomeRefused}
}

func TestCardsAreIndependent(t *testing.T) {
	target := publishCards(t, 1)
	// A lookup found the first card.
	target.Attempt.SearchFrom = timePtr(-time.Hour)
	c := claim("next")
	c.Card = 1
	must.Succeed(t, Open(target, c, at(time.Minute)))
	if target.Attempt.SearchFrom != nil {
		t.Errorf("the search for the second card starts at %v, want its claim", target.Attempt.SearchFrom)
	}
}

func TestCardFailures(t *testing.T) {
	open := func(t *testing.T) *v1alpha1.TargetStatus {
		t.Helper()
		target := publishCards(t, 2)
		c := claim("third")
		c.Card = 2
		must.Succeed(t, Open(target, c, at(time.Minute)))
		return target
	}
	t.Run("refused", func(t *testing.T) {
		target := open(t)
		err := Record(target, "third", platforms.Result{Outcome: platforms.Refused, Err: platforms.Errorf(platforms.ClassPermanent, "no")}, 3, at(time.Minute))
		confirmed(t, target, 2*time.Minute)
		if err != nil || target.State != v1alpha1.TargetFailed || problemOf(target) != "no" || NextCard(target) != 2 || target.ExternalURL != "https://x/id0" {
			t.Errorf("%v: %s", err, problemOf(target))
		}
	})
	t.Run("busy", func(t *testing.T) {
		target := open(t)
		err := Record(target, "third", platforms.Result{Outcome: platforms.NotSent}, 3, at(time.Minute))
		if err != nil || !target.NextTryAt.Equal(timePtr(time.Minute+firstRetry)) {
			t.Errorf("%v: calls of earlier cards must not extend the pause; the next try is at %v", err, target.NextTryAt)
		}
	})
	t.Run("published without a name", func(t *testing.T) {
		target := open(t)
		if err := Record(target, "third", platforms.Result{Outcome: platforms.Posted}, 3, at(time.Minute)); err != nil || !IsOpen(target.Attempt) || len(target.Cards) != 2 {
			t.Errorf("%v: its name must be found: %+v", err, target)
		}
	})
	t.Run("published without a known id, after a user was asked", func(t *testing.T) {
		target := open(t)
		closeUnknown(target, v1alpha1.OnUnknownFail, at(time.Minute), "no proof")
		if err := Record(target, "third", platforms.Result{Outcome: platforms.Posted}, 3, at(time.Hour)); !errors.Is(err, ErrSuperseded) || target.State != v1alpha1.TargetUndecided {
			t.Errorf("%v: only a user can determine its id: %+v", err, target)
		}
	})
	t.Run("found by looking", func(t *testing.T) {
		target := open(t)
		if err := RecordLookup(target, platforms.LookupResult{Matches: 1, ExternalID: "id2"}, timing, v1alpha1.OnUnknownFail, 3, at(time.Hour)); err != nil || target.State != v1alpha1.TargetPosted || target.ExternalID != "id0" {
			t.Errorf("%v: %+v", err, target)
		}
	})
	t.Run("declared by a user", func(t *testing.T) {
		target := publishCards(t, 1)
		target.State = v1alpha1.TargetUndecided
		target.Attempt = &v1alpha1.Attempt{Number: 2, ID: "u", Card: 1, StartedAt: v1alpha1.NewTime(t0), Outcome: v1alpha1.OutcomeUnknown}
		if err := Resolve(target, Resolution{ExternalID: "id1"}, 3, at(2*time.Hour), at(time.Hour)); err != nil || target.State != v1alpha1.TargetPending || NextCard(target) != 2 {
			t.Fatalf("%v: the tree must continue with its third card: %+v", err, target)
		}
		if !target.Cards[1].Unconfirmed {
			t.Error("no lookup has confirmed the ID of the second card")
		}
		if !target.TryUntil.Equal(timePtr(2 * time.Hour)) {
			t.Errorf("tried until %v", target.TryUntil)
		}
	})
	t.Run("only the ids fit", func(t *testing.T) {
		target := open(t)
		RecordIDs(target, "third", platforms.Result{Outcome: platforms.Posted, ExternalID: "id2"}, 3, at(time.Minute))
		if target.State != v1alpha1.TargetPosted || len(target.Cards) != 3 || target.ExternalID != "id0" {
			t.Errorf("%+v", target)
		}
	})
}
