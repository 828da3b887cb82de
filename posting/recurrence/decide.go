// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Lead is the lead time for creating a post. Until the post is created, changes to the schedule apply, including
// suspend. After that, there is time to upload the post's files, which Herald does half an hour before the post is due
// by default.
const Lead = time.Hour

// Facts are the inputs of a decision.
type Facts struct {
	// Schedule is the PostSchedule with its recorded status.
	Schedule *v1alpha1.PostSchedule
	// Held means that no posts are created: the schedule or the team is suspended, or the namespace has no team.
	Held bool
	// StartingDeadline is how late a post may still be published.
	StartingDeadline time.Duration
	// Now is the time of the decision.
	Now time.Time
}

// Occurrence is the time of a post to create.
type Occurrence struct {
	At time.Time
	// Number counts the schedule's posts from 0. It selects the text.
	Number int32
}

// Decision is a schedule's next action.
type Decision struct {
	// Create lists the posts to create, in order.
	Create []Occurrence
	// SkipThrough is the time through which further occurrences are skipped, or zero.
	SkipThrough time.Time
	// Missed is the first occurrence that is skipped because it is too late for it, or zero. Later ones may be skipped
	// too.
	Missed time.Time
	// Next is the time of the first post that is not created yet, or zero if there is none.
	Next time.Time
	// Complete means that no posts remain to be created after those in Create.
	Complete bool
	// Wake is the time of the next decision, or zero.
	Wake time.Time
}

// Decide decides which posts a schedule creates now.
//
// Each occurrence is decided once: status.lastScheduledTime and status.skippedThrough only increase, and occurrences up
// to them are not considered again. Occurrences before the schedule's own creation are never considered, so that a
// schedule that is deleted and applied again does not repeat them. If occurrences pass while the manager is down or the
// team's budget is full, only the latest of them is made up for, and only within the starting deadline.
func Decide(rule *Rule, f Facts) Decision {
	d := decider{rule: rule, Facts: f}
	if f.Held {
		d.skipPassed()
	} else {
		d.createLate()
		d.createAhead()
	}
	return d.Decision
}

type decider struct {
	Decision
	Facts

	rule *Rule
}

// decided returns the time through which occurrences have been decided.
func (d *decider) decided() time.Time {
	through, status := d.Schedule.CreationTimestamp.Time, &d.Schedule.Status
	for _, t := range []*v1alpha1.Time{status.LastScheduledTime, status.SkippedThrough} {
		if t != nil && t.After(through) {
			through = t.Time
		}
	}
	return through
}

// after returns the first occurrence after the given time that is neither before startAt nor after endAt, or zero.
func (d *decider) after(at time.Time) time.Time {
	if start := d.Schedule.Spec.StartAt; start != nil && start.After(at) {
		at = start.Add(-time.Nanosecond)
	}
	next := d.rule.Next(at)
	if end := d.Schedule.Spec.EndAt; end != nil && next.After(end.Time) {
		return time.Time{}
	}
	return next
}

// undecided returns the first undecided occurrence, or zero if there is none.
func (d *decider) undecided() time.Time {
	if count := d.Schedule.Spec.Count; count != nil && d.number() >= *count {
		return time.Time{}
	}
	return d.after(d.decided())
}

func (d *decider) number() int32 {
	return d.Schedule.Status.Posts + int32(len(d.Create)) //nolint:gosec // at most 12 per decision
}

// skipPassed skips the occurrences that have passed, so that the end of a suspension does not publish them.
func (d *decider) skipPassed() {
	next := d.undecided()
	if !next.IsZero() && !next.After(d.Now) {
		d.SkipThrough, next = d.Now, d.after(d.Now)
	}
	d.Wake, d.Complete = next, next.IsZero()
}

// createLate creates the latest occurrence that has passed, and skips the earlier ones.
func (d *decider) createLate() {
	first := d.undecided()
	if first.IsZero() || first.After(d.Now) {
		return
	}
	late := time.Time{}
	next := first
	if earliest := d.Now.Add(-d.StartingDeadline); first.Before(earliest) {
		next = d.after(earliest.Add(-time.Nanosecond))
	}
	for ; !next.IsZero() && !next.After(d.Now); next = d.after(next) {
		late = next
	}
	if late.IsZero() {
		d.SkipThrough = d.Now
	} else {
		d.create(late)
	}
	if !first.Equal(late) {
		d.Missed = first
	}
}

func (d *decider) createAhead() {
	from := d.decided()
	for {
		if from.Before(d.Now) {
			from = d.Now
		}
		if count := d.Schedule.Spec.Count; count != nil && d.number() >= *count {
			d.Complete = true
			return
		}
		next := d.after(from)
		switch {
		case next.IsZero():
			d.Complete = true
			return
		case next.After(d.Now.Add(Lead)):
			d.Next, d.Wake = next, next.Add(-Lead)
			return
		}
		d.create(next)
		from = next
	}
}

func (d *decider) create(at time.Time) {
	d.Create = append(d.Create, Occurrence{At: at, Number: d.number()})
}
