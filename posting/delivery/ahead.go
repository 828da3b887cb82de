// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

const (
	// textAhead is how long before its time a text is prepared: that takes a
	// moment, and is not recorded.
	textAhead = time.Minute
	// firstAheadPause and longestAheadPause bound the pauses between two tries
	// before the post's time.
	firstAheadPause   = 10 * time.Second
	longestAheadPause = 5 * time.Minute
	// maxPreparedProblem is the schema's bound on the problem of a preparation.
	maxPreparedProblem = 1024
)

// ExpectedRate is how many bytes of its files a second a platform is expected to
// take; big files begin earlier.
const ExpectedRate = 1 << 20

// ahead is what is decided about the preparations of a post before its time.
type ahead struct {
	missing   []int
	actions   []Action
	next      time.Time
	forInputs bool
}

func (a *ahead) requeueAt(at time.Time) {
	if !at.IsZero() && (a.next.IsZero() || at.Before(a.next)) {
		a.next = at
	}
}

// prepareAhead decides what precedes the visible calls and is made before the
// post's time, and enters what came of it. A post that was prepared can still be
// cancelled or edited.
func (f *Facts) prepareAhead() *ahead {
	a := &ahead{}
	for i := range f.Post.Spec.Targets {
		if f.connection(i) != nil && f.categoryProblem(i) == "" && !attempt.Settled(posting.Target(f.Post, i)) {
			f.prepareTargetAhead(a, i)
		}
	}
	if len(a.missing) > 0 && !f.SlotsRequested {
		a.actions = append(a.actions, Prepare{Targets: a.missing, Ahead: true})
	}
	return a
}

func (f *Facts) prepareTargetAhead(a *ahead, i int) {
	p := f.Preparation(i)
	if p.State == PreparationNotNeeded {
		return
	}
	t := posting.Target(f.Post, i)
	outdate(t, p.Hash)
	if from := f.AheadFrom(i, p.TTL); from.After(f.Now) {
		a.requeueAt(from)
		return
	}
	if f.blocked(i) != nil {
		// A change wakes the post; before that nothing is tried.
		a.forInputs = true
		a.requeueAt(f.blockedUntil(i))
		return
	}
	if f.credentialsProblem(i) != "" {
		a.forInputs = true
		a.requeueAt(f.Now.Add(credentialsPause))
		return
	}
	files := len(Files(f.Post, i)) > 0
	switch p.State {
	case PreparationNotNeeded:
	case PreparationMissing:
		a.missing = append(a.missing, i)
	case PreparationRunning:
		if files {
			f.recordProgress(t, &p)
		}
	case PreparationReady:
		recordPrepared(t, &p, files)
	case PreparationFailed, PreparationVisible:
		if retry := preparationRetryAt(&p); retry.After(f.Now) {
			a.requeueAt(retry)
		} else {
			a.missing = append(a.missing, i)
		}
		if recordFailure(t, &p) {
			a.actions = append(a.actions, ReportPreparation{Target: i, Ahead: true})
		}
	}
}

// outdate drops what is recorded of a preparation for what the post said before an
// edit. What a Secret keeps of it stays known, so that it is removed with the rest.
func outdate(t *v1alpha1.TargetStatus, hash string) {
	switch {
	case t.Prepared == nil || t.Prepared.ContentHash == hash:
	case t.Prepared.Secret:
		t.Prepared = &v1alpha1.Prepared{ContentHash: hash, Secret: true, MadeAt: t.Prepared.MadeAt}
	default:
		t.Prepared = nil
	}
}

// AheadFrom is from when on a target of a scheduled post may be prepared: as long
// before the post's time as is configured, and earlier for big files, but not so
// early that the platform, which keeps it for lasts, would have forgotten it again.
// Posts of one time do not all begin at once.
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

// preparationRetryAt is when a preparation that failed ahead of time is tried again; far
// away if that is left to the post's time, because the platform will not change
// its mind.
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

// recordPrepared enters a preparation that is complete. A text is made again in a
// moment, and is not recorded.
func recordPrepared(t *v1alpha1.TargetStatus, p *Preparation, files bool) {
	known := t.Prepared
	secret, hash := p.recordedSecret(known)
	switch {
	case !files:
		t.Prepared = nil
	case known == nil || !known.Complete || known.ContentHash != p.Hash || known.Checkpoint != p.Checkpoint, known.SecretHash != hash:
		t.Prepared = &v1alpha1.Prepared{
			ContentHash: p.Hash, Checkpoint: p.Checkpoint, Secret: secret, SecretHash: hash, MadeAt: v1alpha1.NewTime(p.EndedAt), Complete: true,
		}
	}
}

// recordFailure enters why a preparation failed, and reports whether that is news.
func recordFailure(t *v1alpha1.TargetStatus, p *Preparation) (news bool) {
	secret, hash := p.recordedSecret(t.Prepared)
	failed := v1alpha1.Prepared{
		ContentHash: p.Hash, Checkpoint: p.Checkpoint, Secret: secret, SecretHash: hash, MadeAt: v1alpha1.NewTime(p.EndedAt),
		Problem: text.Truncate(p.Err.Error(), maxPreparedProblem),
	}
	if known := t.Prepared; known != nil {
		same := *known
		same.MadeAt, same.Checkpoint, same.Secret, same.SecretHash, same.Complete = failed.MadeAt, failed.Checkpoint, failed.Secret, failed.SecretHash, false
		if same == failed {
			if known.SecretHash != failed.SecretHash {
				// Without it, what the Secret holds would not be used again.
				t.Prepared = &failed
			}
			return false
		}
	}
	t.Prepared = &failed
	return true
}
