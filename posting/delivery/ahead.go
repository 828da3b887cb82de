// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
)

const (
	// textAhead is the lead time for preparing a text post, which is quick and not recorded.
	textAhead = time.Minute
	// firstAheadPause and longestAheadPause bound the backoff between attempts to prepare early.
	firstAheadPause   = 10 * time.Second
	longestAheadPause = 5 * time.Minute
	// maxPreparedProblem is the schema's maximum length of Prepared.Problem.
	maxPreparedProblem = 1024
)

// ExpectedRate is the upload rate to allow for, in bytes per second. Large files are prepared correspondingly earlier.
const ExpectedRate = 1 << 20

type ahead struct {
	preparations

	reports   []Action
	next      time.Time
	forInputs bool
}

func (a *ahead) requeueAt(at time.Time) {
	if !at.IsZero() && (a.next.IsZero() || at.Before(a.next)) {
		a.next = at
	}
}

// prepareAhead decides which preparations to start before the scheduled time, and records their results. A prepared
// post can still be cancelled or edited.
func (f *Facts) prepareAhead() *ahead {
	a := &ahead{}
	for i := range f.Post.Spec.Targets {
		if f.connection(i) != nil && f.categoryProblem(i) == "" && !attempt.Settled(f.Target(i)) {
			f.prepareTargetAhead(a, i)
		}
	}
	a.requeueAt(a.holdsAt)
	return a
}

func (f *Facts) prepareTargetAhead(a *ahead, i int) {
	p := f.Preparation(i)
	if p.State == PreparationNotNeeded {
		return
	}
	outdate(f.Target(i), p.Hash)
	f.prepareFrom(a, i, &p, f.AheadFrom(i, p.TTL))
}

// prepareFrom decides about a target's preparation, which may start at the given time.
func (f *Facts) prepareFrom(a *ahead, i int, p *Preparation, from time.Time) {
	if from.After(f.Now) {
		a.requeueAt(from)
		return
	}
	if f.blocked(i) != nil {
		// A change to its inputs requeues the post. Retrying before that would fail again.
		a.forInputs = true
		a.requeueAt(f.blockedUntil(i))
		return
	}
	if f.credentialsProblem(i) != "" {
		a.forInputs = true
		a.requeueAt(f.Now.Add(credentialsPause))
		return
	}
	t, files := f.Target(i), len(Files(f.Post, i)) > 0
	switch p.State {
	case PreparationNotNeeded:
	case PreparationMissing:
		f.startPreparation(&a.preparations, i, t, p)
	case PreparationRunning:
		if files && !f.losePreparation(&a.preparations, i, t, p) {
			f.continuePreparation(&a.preparations, t, p, f.shares(i))
		}
	case PreparationReady:
		f.recordPrepared(t, p, files)
	case PreparationFailed, PreparationVisible:
		if f.losePreparation(&a.preparations, i, t, p) {
			return
		}
		if recordFailure(t, p) {
			a.reports = append(a.reports, ReportPreparation{Target: i, Ahead: true})
		}
		if retry := preparationRetryAt(p); retry.After(f.Now) {
			a.requeueAt(retry)
		} else {
			f.startPreparation(&a.preparations, i, t, p)
		}
	}
}

// outdate drops a recorded preparation whose content no longer matches the edited post. It keeps the reference to a
// Secret with upload sessions, so that the Secret can be cleaned up.
func outdate(t *v1alpha1.TargetStatus, hash string) {
	switch {
	case t.Prepared == nil || t.Prepared.ContentHash == hash:
	case t.Prepared.Secret:
		t.Prepared = &v1alpha1.Prepared{ContentHash: hash, Secret: true, MadeAt: t.Prepared.MadeAt}
	default:
		t.Prepared = nil
	}
}

// AheadFrom returns the time when a scheduled target's preparation may start: earlier than the scheduled time by the
// configured lead time plus the upload time of large files, but by at most half of lasts, the lifetime of a
// preparation. A spread staggers posts with equal times.
func (f *Facts) AheadFrom(i int, lasts time.Duration) time.Time {
	var bytes int64
	files := Files(f.Post, i)
	for _, ref := range files {
		if m := f.Media[ref.Name]; m != nil {
			bytes += m.Status.SizeBytes
		}
	}
	lead := f.Settings.PrepareAhead + time.Duration(bytes/ExpectedRate)*time.Second
	if len(files) == 0 {
		lead = min(lead, textAhead)
	}
	lead = min(lead, lasts/2)
	return f.Post.Spec.ScheduledAt.Add(-lead + f.spread(lead/2))
}

// preparationRetryAt returns the time to retry an early preparation that failed. For a permanent error it returns a
// time a year away, which puts off the next attempt until the scheduled time.
func preparationRetryAt(p *Preparation) time.Time {
	if p.Err.Class == platforms.ClassPermanent || p.Err.Class == platforms.ClassDuplicate {
		return p.EndedAt.Add(24 * 365 * time.Hour)
	}
	pause := firstAheadPause
	for n := p.Failures; n > 0 && pause < longestAheadPause; n-- {
		pause *= 2
	}
	at := p.EndedAt.Add(min(pause, longestAheadPause))
	if p.Err.RetryAt.After(at) {
		at = p.Err.RetryAt
	}
	return at
}

// recordPrepared records a complete preparation, and ends a hold on it. Preparing a text post is quick to repeat and is
// not recorded.
func (f *Facts) recordPrepared(t *v1alpha1.TargetStatus, p *Preparation, files bool) {
	known := t.Prepared
	secret, hash := p.recordedSecret(known)
	switch {
	case !files:
		t.Prepared = nil
	case f.superseded(t, p):
	case known == nil || !known.Complete || known.ContentHash != p.Hash || known.Checkpoint != p.Checkpoint, known.SecretHash != hash:
		t.Prepared = &v1alpha1.Prepared{
			ContentHash: p.Hash, Checkpoint: p.Checkpoint, Secret: secret, SecretHash: hash, MadeAt: v1alpha1.NewTime(p.EndedAt), Complete: true,
		}
	}
}

// recordFailure records a preparation error and reports whether it differs from the recorded one.
func recordFailure(t *v1alpha1.TargetStatus, p *Preparation) (news bool) {
	secret, hash := p.recordedSecret(t.Prepared)
	failed := v1alpha1.Prepared{
		ContentHash: p.Hash, Checkpoint: p.Checkpoint, Secret: secret, SecretHash: hash, MadeAt: v1alpha1.NewTime(p.EndedAt),
		Problem: text.Truncate(p.Err.Error(), maxPreparedProblem),
	}
	if known := t.Prepared; known != nil {
		same := *known
		same.MadeAt, same.Checkpoint, same.Secret, same.SecretHash, same.Complete, same.By = failed.MadeAt, failed.Checkpoint, failed.Secret, failed.SecretHash, false, nil
		if same == failed {
			if known.SecretHash != failed.SecretHash || known.By != nil {
				// Without the new hash, the content of the Secret would not be reused. A hold ends with the failure.
				t.Prepared = &failed
			}
			return false
		}
	}
	t.Prepared = &failed
	return true
}
