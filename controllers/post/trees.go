// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// cardPatience is how long the record of a card waits for what precedes the next
// one, so that one write records the one and claims the other. It is short: until
// then only the platform knows that the card is published.
const cardPatience = time.Second

// goesOn reports whether the card that a shipment published is followed by
// another one. The account's gate is kept for it: nothing comes between the cards
// of a tree.
func goesOn(post *v1alpha1.Post, sh *shipment) bool {
	a := posting.Target(post, sh.index).Attempt
	return sh.result.Outcome == platforms.Posted && sh.result.ExternalID != "" && a != nil && int(a.Card)+1 < posting.Cards(&post.Spec)
}

// nextCards returns the shipments that may follow those of a batch at once: the
// next cards of trees, with what precedes their calls.
func (s *scope) nextCards(ctx context.Context, batch []*shipment) (next []*shipment) {
	// Recording may have found that the post is being deleted.
	if ctx.Err() != nil || posting.Cards(&s.post.Spec) < 2 || !s.post.DeletionTimestamp.IsZero() {
		return nil
	}
	// The post as it will be when the batch is recorded.
	trial := *s
	trial.post = s.post.DeepCopy()
	s.ledger.enter(trial.post, batch)
	begun := map[*shipment]*preparation{}
	for _, sh := range batch {
		t := posting.Target(trial.post, sh.index)
		if !s.heldUntil(sh.index, s.Clock.Now()).IsZero() {
			continue // the platform wants no more calls, as it said with this card
		}
		if t == nil || t.Phase != v1alpha1.PhaseProcessing || t.Attempt == nil || t.Attempt.Outcome != v1alpha1.OutcomePosted {
			continue
		}
		follower := &shipment{index: sh.index, conn: sh.conn, publisher: sh.publisher, token: sh.token}
		if trial.fileProblem(sh.index) == "" && trial.beginCard(ctx, follower, begun) {
			next = append(next, follower)
		}
	}
	s.awaitCards(begun)
	return slices.DeleteFunc(next, func(sh *shipment) bool {
		p := begun[sh]
		if p == nil {
			return false
		}
		if !p.ready() {
			return true
		}
		sh.made, sh.unasked = p.result, p.ahead
		s.Failpoint(PointAfterPrepare)
		return false
	})
}

// beginCard has made what precedes the call of a card, if anything does, and
// enters what was begun. It reports false if there is no place for that; the post
// is woken when there is.
func (s *scope) beginCard(ctx context.Context, sh *shipment, begun map[*shipment]*preparation) bool {
	preparer, ok := sh.publisher.(platforms.Preparer)
	if !ok || !preparer.Prepares(s.content(s.post, sh.index)) {
		return true
	}
	p := s.preparing(ctx, preparer, sh)
	if p != nil {
		begun[sh] = p
	}
	return p != nil
}

// awaitCards waits for what was begun for cards, for all together no longer than
// for one. What takes longer goes on, and its end wakes the post.
func (s *scope) awaitCards(begun map[*shipment]*preparation) {
	timer := s.Clock.NewTimer(cardPatience)
	defer timer.Stop()
	for _, p := range begun {
		select {
		case <-p.done:
		case <-timer.C():
			return
		}
	}
}

// recordAndClaim records a batch and claims the next cards by one write, which is
// tried once. If that fails nothing is sent, and the batch is to be recorded alone.
func (s *scope) recordAndClaim(ctx context.Context, batch, next []*shipment) bool {
	s.Failpoint(PointBeforeClaim)
	post := s.post.DeepCopy()
	s.ledger.enter(post, batch)
	now := s.Clock.Now()
	for _, sh := range next {
		if err := s.open(post, sh, now); err != nil {
			s.log.Error(err, "cannot go on with a tree", "uid", s.post.UID, "target", sh.index)
			return false
		}
	}
	describe(post, now)
	if err := s.ledger.claim(ctx, post, next); err != nil {
		s.log.Info("the next card is not claimed together with the record of the one before", "uid", s.post.UID, "error", err.Error())
		return false
	}
	*s.post = *post
	s.taken.note(s.post)
	for _, sh := range next {
		s.preparations.drop(s.key, sh.index)
	}
	return true
}

// restOfTrees gives back the gates that were kept for cards that were not claimed,
// and has the post come back for those.
func (s *scope) restOfTrees(batch, next []*shipment) {
	claimed := map[int]bool{}
	for _, sh := range next {
		claimed[sh.index] = true
	}
	for _, sh := range batch {
		t := posting.Target(s.post, sh.index)
		if claimed[sh.index] || t == nil || posting.Cards(&s.post.Spec) < 2 {
			continue
		}
		s.admission.Release(s.key.String(), sh.gate())
		if !posting.Settled(s.post, sh.index) && !attempt.IsOpen(t.Attempt) {
			s.enqueue(s.key)
		}
	}
}
