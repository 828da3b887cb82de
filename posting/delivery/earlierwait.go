// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/record"
)

// archiveRetryPause is the minimum pause between reads of the archive.
const archiveRetryPause = 15 * time.Second

// requiresEarlier reports whether the earlier post's outcome is needed. A cancelled post may copy a published one.
func (f *Facts) requiresEarlier() bool {
	return !f.Post.Status.Finished && !f.Post.Spec.Draft && (!f.Cancelled() || record.IsCopy(f.Post)) && record.LookupRequired(f.Post)
}

// earlierDeadline returns the earliest time when the wait for the earlier post's outcome may end, regardless of the
// post's own deadline. In a restored cluster, the posts' due times are long past, whereas the team and its bucket
// become ready only some time after the object was created or the manager started.
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

// deferForTeam makes a post that depends on an earlier one wait while no team owns its namespace: only the team's
// archive contains the earlier post. It returns no actions if the post may proceed.
func (f *Facts) deferForTeam() []Action {
	if !f.Unowned || !f.requiresEarlier() {
		return nil
	}
	if actions := f.lookupOpenFirst(); actions != nil {
		return actions
	}
	switch by := f.earlierDeadline(); {
	case !f.Cancelled():
		return f.waitForTeam()
	case f.Now.Before(by):
		return []Action{Wait{Until: by, ForInputs: true}}
	case len(f.Post.Status.Targets) == 0 && f.dueCopy(): // no lookup was possible
		return f.markUndecided(restored)
	}
	return nil
}

func (f *Facts) archiveRetryAt() time.Time {
	return f.Now.Add(archiveRetryPause + f.spread(archiveRetryPause/3))
}

// waitCancelled waits for the archive to show that a cancelled post is unpublished: a recorded cancellation is final.
func (f *Facts) waitCancelled() Wait { return Wait{Until: f.archiveRetryAt()} }

func (f *Facts) waitForTeam() []Action {
	w := block{reason: v1alpha1.ReasonNoTeam, message: noTeam(f.Post).Problem, blocked: func(int) v1alpha1.Blocked { return noTeam(f.Post) }}
	if f.requiresEarlier() {
		w.least, w.end = f.earlierDeadline(), f.uncertainCopy()
	}
	return f.blockAll(w)
}

// uncertainCopy returns the block for a copy that may have been published by the end of its wait, or nil.
func (f *Facts) uncertainCopy() *v1alpha1.Blocked {
	if !f.dueCopy() {
		return nil
	}
	return &restored
}

// waitForRecord blocks a post until the archive responds. At its deadline, but not before least, the post fails or
// becomes undecided. It is never sent without the archive's response.
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
