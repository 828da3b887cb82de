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

// askAgain is how soon an archive that does not answer is asked again, at the soonest.
const askAgain = 15 * time.Second

// mustLearn reports whether it must be known what became of an earlier post before this one goes
// on. One that was cancelled may be a copy of what is out.
func (f *Facts) mustLearn() bool {
	post := f.Post
	return !post.Status.Finished && !post.Spec.Draft && (!posting.Cancelled(post) || record.Copied(post)) && record.Wanted(post)
}

// learnsBy is until when a post waits at least to learn that, whatever its own time: of what a
// restored cluster brings back the time is long over, and its team is ready, and its bucket
// found, a moment after the object was made or the manager began.
func (f *Facts) learnsBy() time.Time {
	if !record.Wanted(f.Post) {
		return time.Time{}
	}
	since := f.Post.CreationTimestamp.Time
	if f.Began.After(since) {
		since = f.Began
	}
	return since.Add(f.Settings.StartingDeadline)
}

// learnLater has a post wait that must learn what became of an earlier one, while no team owns
// its namespace: nothing else can tell. It returns no actions if the post goes on.
func (f *Facts) learnLater() []Action {
	if !f.Unowned || !f.mustLearn() {
		return nil
	}
	if actions := f.settleFirst(); actions != nil {
		return actions
	}
	switch by := f.learnsBy(); {
	case !posting.Cancelled(f.Post):
		return f.waitForTeam()
	case f.Now.Before(by):
		return []Action{Wait{Until: by, ForInputs: true}}
	case len(f.Post.Status.Targets) == 0 && f.dueCopy(): // nobody was asked
		return f.askAbout(restored)
	}
	return nil
}

// askedAgain is when an archive that does not answer is asked again.
func (f *Facts) askedAgain() time.Time { return f.Now.Add(askAgain + f.spread(askAgain/3)) }

// waitCancelled is the pause of a post that is told to be cancelled, for good, when it is known
// not to be out.
func (f *Facts) waitCancelled() Wait { return Wait{Until: f.askedAgain()} }

// waitForTeam says that a post waits for a team that owns its namespace.
func (f *Facts) waitForTeam() []Action {
	w := withholding{reason: v1alpha1.ReasonNoTeam, message: noTeam(f.Post).Problem, blocked: func(int) v1alpha1.Blocked { return noTeam(f.Post) }}
	if f.mustLearn() {
		w.least, w.end = f.learnsBy(), f.doubtOfCopy()
	}
	return f.withholdAs(w)
}

// doubtOfCopy is how the wait ends of a copy that may be out; nil for any other post.
func (f *Facts) doubtOfCopy() *v1alpha1.Blocked {
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
	actions := f.withholdAs(withholding{
		reason: v1alpha1.ReasonRecordUnavailable, message: problem, blocked: func(int) v1alpha1.Blocked { return blocked }, least: least, end: end,
	})
	for i, action := range actions {
		wait, ok := action.(Wait)
		if again := f.askedAgain(); ok && (wait.Until.IsZero() || again.Before(wait.Until)) {
			wait.Until, wait.InTurn = again, false
			actions[i] = wait
		}
	}
	return actions
}
