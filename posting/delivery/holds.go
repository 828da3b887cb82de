// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/posting/attempt"
)

// Several processes may prepare files, while one of them delivers posts. A process first records in the target's status
// that it holds the preparation, and starts once that write is confirmed. Holds serve only to avoid duplicate uploads:
// regardless of who prepared a target, its claim names one complete preparation of the claimed content.

const (
	// headStart is the time that the process that delivers posts has to hold a preparation before others do. Each of the
	// others waits for up to headStartSpread longer. That time differs by process, so the first of them holds the
	// preparation without a conflict.
	headStart       = time.Second
	headStartSpread = 2 * time.Second
)

// preparations holds the next steps of a post's preparations.
type preparations struct {
	// missing ones start now, and hold ones once this process holds them. lost ones stop, since another process holds or
	// has completed them.
	missing, hold, lost []int
	// holdsAt is the time when a hold ends or should be extended, or zero.
	holdsAt time.Time
}

func (s *preparations) requeueAt(at time.Time) {
	if !at.IsZero() && (s.holdsAt.IsZero() || at.Before(s.holdsAt)) {
		s.holdsAt = at
	}
}

// actions returns the actions that stop and start preparations.
func (s *preparations) actions(f *Facts, ahead bool) (actions []Action) {
	if len(s.lost) > 0 {
		actions = append(actions, StopPreparing{s.lost})
	}
	if len(s.missing)+len(s.hold) > 0 && !f.SlotsRequested {
		actions = append(actions, Prepare{Targets: s.missing, Hold: s.hold, Ahead: ahead})
	}
	return actions
}

// DecidePreparation returns the next actions of a process that does not deliver the post, but may prepare it. It
// decides only about posts that the delivering process has accepted, and writes only if a preparation has changed:
// another write might conflict with a claim.
func DecidePreparation(f *Facts) []Action {
	a, changed := &ahead{}, false
	shared := f.mayAssist()
	for i := range f.Post.Spec.Targets {
		if shared && f.shares(i) && f.Target(i).NextTryAt == nil && f.connection(i) != nil && f.categoryProblem(i) == "" && !attempt.Settled(f.Target(i)) {
			before := f.Target(i).Prepared
			f.assist(a, i)
			changed = changed || before != f.Target(i).Prepared
		} else {
			a.lost = append(a.lost, i)
		}
	}
	a.requeueAt(a.holdsAt)
	actions := slices.Concat(a.reports, a.actions(f, true))
	if changed {
		actions = append(actions, Write{})
	}
	return append(actions, Wait{Until: a.next, ForInputs: a.forInputs})
}

func (f *Facts) mayAssist() bool {
	post := f.Post
	return f.Holder != "" && post.DeletionTimestamp.IsZero() && !post.Status.Finished && !post.Spec.Draft && !f.Cancelled() && !f.Unowned &&
		post.Status.ObservedGeneration == post.Generation && len(f.Invalid()) == 0
}

// assist decides about one target. Content that differs from the recorded one is left to the delivering process: the
// two may have read different versions of a file, or compute its hash differently.
func (f *Facts) assist(a *ahead, i int) {
	p, t := f.Preparation(i), f.Target(i)
	switch {
	case p.State == PreparationNotNeeded:
	case t.Prepared != nil && t.Prepared.ContentHash != p.Hash, p.State != PreparationReady && f.adoptable(t, &p):
		a.lost = append(a.lost, i)
	default:
		from := f.Due()
		if f.Post.Spec.ScheduledAt != nil {
			from = f.AheadFrom(i, p.TTL)
		}
		f.prepareFrom(a, i, &p, from.Add(headStart+pacing.Spread(headStartSpread, f.Post.UID+types.UID(f.Holder))))
	}
}

// shares reports whether any process may prepare a target. Trees, retries of other posts and targets that had an
// attempt are prepared by the process that delivers them, which knows what earlier calls published.
func (f *Facts) shares(i int) bool {
	t := f.Target(i)
	return f.Holder != "" && f.Post.Spec.Tree == nil && f.Post.Spec.RetryOf == nil && len(Files(f.Post, i)) > 0 && t != nil && t.Attempt == nil
}

// otherHoldUntil returns the time when another process's hold on a preparation has ended by any clock, or zero if there
// is none. A hold cannot last longer than Settings.HoldFor: one that seems to was recorded by a wrong clock, and does
// not count.
func (f *Facts) otherHoldUntil(t *v1alpha1.TargetStatus, hash string) time.Time {
	p := t.Prepared
	if p == nil || p.By == nil || p.ContentHash != hash || p.By.Holder == f.Holder {
		return time.Time{}
	}
	until := p.By.Until.Add(f.Settings.ClockMargin)
	if !until.After(f.Now) || until.After(f.Now.Add(f.Settings.HoldFor+2*f.Settings.ClockMargin)) {
		return time.Time{}
	}
	return until
}

func (f *Facts) hasHold(t *v1alpha1.TargetStatus, hash string) bool {
	p := t.Prepared
	return p != nil && p.By != nil && p.ContentHash == hash && p.By.Holder == f.Holder && p.By.Until.After(f.Now)
}

// adoptable reports whether the status has a complete preparation that can be used without the platform checking it.
func (f *Facts) adoptable(t *v1alpha1.TargetStatus, p *Preparation) bool {
	known := t.Prepared
	return known != nil && known.Complete && known.ContentHash == p.Hash && f.Now.Sub(known.MadeAt.Time) < ReusableFor(p.TTL)
}

// ReusableFor returns the time for which a preparation with the given lifetime is used without the platform checking
// it. The rest of its lifetime is enough for the retries that follow.
func ReusableFor(ttl time.Duration) time.Duration { return ttl * 3 / 4 }

// startPreparation starts a target's preparation, or has this process hold it first. It reports false if another
// process holds it, or has recently failed to prepare it.
func (f *Facts) startPreparation(s *preparations, i int, t *v1alpha1.TargetStatus, p *Preparation) (starts bool) {
	if until := f.otherHoldUntil(t, p.Hash); !until.IsZero() {
		s.requeueAt(until)
		return false
	}
	switch {
	case !f.shares(i), f.adoptable(t, p), f.hasHold(t, p.Hash):
		s.missing = append(s.missing, i)
	case f.failedElsewhere(t, p).After(f.Now):
		s.requeueAt(f.failedElsewhere(t, p))
		return false
	default:
		s.hold = append(s.hold, i)
	}
	return true
}

// failedElsewhere returns the time until which a failed preparation is retried only by the process in which it failed,
// because that process knows the number of failures. It returns zero if the post is due.
func (f *Facts) failedElsewhere(t *v1alpha1.TargetStatus, p *Preparation) time.Time {
	known := t.Prepared
	if p.State != PreparationMissing || known == nil || known.Problem == "" || known.ContentHash != p.Hash || f.UntilDue(f.Now) <= 0 {
		return time.Time{}
	}
	return known.MadeAt.Add(longestAheadPause)
}

// losePreparation drops a preparation that has not succeeded in this process, and that another process holds or has
// completed. It reports whether it did. A completed one is adopted.
func (f *Facts) losePreparation(s *preparations, i int, t *v1alpha1.TargetStatus, p *Preparation) (lost bool) {
	if !f.shares(i) {
		return false
	}
	until, complete := f.otherHoldUntil(t, p.Hash), f.adoptable(t, p)
	if until.IsZero() && !complete {
		return false
	}
	s.lost = append(s.lost, i)
	s.requeueAt(until)
	if complete {
		s.missing = append(s.missing, i)
	}
	return true
}

// continuePreparation records the progress of a running preparation, and extends this process's hold if it is shared.
func (f *Facts) continuePreparation(s *preparations, t *v1alpha1.TargetStatus, p *Preparation, shared bool) (changed bool) {
	changed = f.recordProgress(t, p)
	if !shared {
		return changed
	}
	if f.hasHold(t, p.Hash) {
		if extend := t.Prepared.By.Until.Add(-f.Settings.HoldFor / 2); extend.After(f.Now) {
			s.requeueAt(extend)
			return changed
		}
	}
	f.recordHold(t, p.Hash)
	s.requeueAt(f.Now.Add(f.Settings.HoldFor / 2))
	return true
}

// RecordHolds records in the post's status, in addition to the decision, that this process holds the targets'
// preparations. Store the post with its original resourceVersion before the preparations start.
func (f *Facts) RecordHolds(targets []int) {
	for _, i := range targets {
		p := f.Preparation(i)
		f.recordHold(f.Target(i), p.Hash)
	}
	Describe(f.Post, f.Now)
}

func (f *Facts) recordHold(t *v1alpha1.TargetStatus, hash string) {
	next := v1alpha1.Prepared{ContentHash: hash, MadeAt: v1alpha1.NewTime(f.Now)}
	if known := t.Prepared; known != nil && known.ContentHash == hash && !known.Complete {
		next = *known
	}
	next.By = &v1alpha1.PreparedBy{Holder: f.Holder, Until: v1alpha1.NewTime(f.Now.Add(f.Settings.HoldFor))}
	t.Prepared = &next
}

func endHold(t *v1alpha1.TargetStatus) {
	if t.Prepared != nil && t.Prepared.By != nil {
		next := *t.Prepared
		next.By, t.Prepared = nil, &next
	}
}

// superseded reports whether the status has a later complete preparation of the same content. Without this order, two
// processes that have both completed one would replace each other's forever.
func (f *Facts) superseded(t *v1alpha1.TargetStatus, p *Preparation) bool {
	known := t.Prepared
	if f.Holder == "" || known == nil || !known.Complete || known.ContentHash != p.Hash {
		return false
	}
	made := v1alpha1.NewTime(p.EndedAt).Time
	return known.MadeAt.After(made) || known.MadeAt.Time.Equal(made) && known.Checkpoint > p.Checkpoint
}
