// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/record"
)

// What is here has a post wait until it can be known what became of an earlier one.

// archiveRetryPause is how soon an archive that does not answer is asked again, at the soonest.
const archiveRetryPause = 15 * time.Second

// requiresEarlier reports whether it must be known what became of an earlier post before this one goes
// on. One that was cancelled may be a copy of what is out.
func (f *Facts) requiresEarlier() bool {
	post := f.Post
	return !post.Status.Finished && !post.Spec.Draft && (!posting.Cancelled(post) || record.IsCopy(post)) && record.LookupRequired(post)
}

// earlierDeadline is until when a post waits at least to learn that, whatever its own time: of what a
// restored cluster brings back the time is long over, and its team is ready, and its bucket
// found, a moment after the object was made or the manager began.
func (f *Facts) earlierDeadline() time.Time {
	if !record.LookupRequired(f.Post) {
		return time.Time{}
	}
	since := f.Post.CreationTimestamp.Time
	if f.StartedAt.After(since) {
		since = f.StartedAt
	}
	return since.Add(f.Settings.StartingDeadline)
}

// deferForTeam has a post wait that must learn what became of an earlier one, while no team owns
// its namespace: nothing else can tell. It returns no actions if the post goes on.
func (f *Facts) deferForTeam() []Action {
	if !f.Unowned || !f.requiresEarlier() {
		return nil
	}
	if actions := f.lookupOpenFirst(); actions != nil {
		return actions
	}
	switch by := f.earlierDeadline(); {
	case !posting.Cancelled(f.Post):
		return f.waitForTeam()
	case f.Now.Before(by):
		return []Action{Wait{Until: by, ForInputs: true}}
	case len(f.Post.Status.Targets) == 0 && f.dueCopy(): // nobody was asked
		return f.markUndecided(restored)
	}
	return nil
}

// archiveRetryAt is when an archive that does not answer is asked again.
func (f *Facts) archiveRetryAt() time.Time {
	return f.Now.Add(archiveRetryPause + f.spread(archiveRetryPause/3))
}

// waitCancelled is the pause of a post that is told to be cancelled, for good, when it is known
// not to be out.
func (f *Facts) waitCancelled() Wait { return Wait{Until: f.archiveRetryAt()} }

// waitForTeam says that a post waits for a team that owns its namespace.
func (f *Facts) waitForTeam() []Action {
	w := block{reason: v1alpha1.ReasonNoTeam, message: noTeam(f.Post).Problem, blocked: func(int) v1alpha1.Blocked { return noTeam(f.Post) }}
	if f.requiresEarlier() {
		w.least, w.end = f.earlierDeadline(), f.uncertainCopy()
	}
	return f.blockAll(w)
}

// uncertainCopy is how the wait ends of a copy that may be out; nil for any other post.
func (f *Facts) uncertainCopy() *v1alpha1.Blocked {
	if !f.dueCopy() {
		return nil
	}
	return &restored
}

// waitForRecord says that a post waits for the archive. At its deadline, and not before a time,
// it fails, or ends in doubt: it is never sent unasked.
func (f *Facts) waitForRecord(least time.Time, end *v1alpha1.Blocked, problem string) []Action {
	blocked := v1alpha1.Blocked{
		Reason:  v1alpha1.ReasonRecordUnavailable,
		Problem: problem,
		Remedy:  remedies[v1alpha1.ReasonRecordUnavailable],
	}
	actions := f.blockAll(block{
		reason: v1alpha1.ReasonRecordUnavailable, message: problem, blocked: func(int) v1alpha1.Blocked { return blocked }, least: least, end: end,
	})
	for i, action := range actions {
		wait, ok := action.(Wait)
		if again := f.archiveRetryAt(); ok && (wait.Until.IsZero() || again.Before(wait.Until)) {
			wait.Until, wait.InTurn = again, false
			actions[i] = wait
		}
	}
	return actions
}
