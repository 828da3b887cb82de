// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
)

// The posts of a crowd, which are due at the same time, are armed: they are claimed before that time, each in a group.
// When they are due, one write opens a group, and only then are its calls made. A process that closes a group before it
// is opened has proof that none of its posts was sent. See docs/adr/0026.

const (
	// armAhead is how far in advance a crowd's posts are claimed, and maxArmAhead is the same for the largest crowds: a
	// crowd's groups have room for some 5,000 posts. An armed post cannot be cancelled.
	armAhead, maxArmAhead = 15 * time.Second, 50 * time.Second
	// armRate is the number of claims per second for which a crowd has time. Kubernetes on two CPUs, which it shares with
	// all parts of Herald, stores about 165 (docs/performance.md, B7).
	armRate = 100
	// minArmAhead is the minimum time that must be left until a post is due for it to be armed: it must be claimed before its
	// group is opened.
	minArmAhead = time.Second
	// maxArmed is the maximum number of times that a post is armed. It stops two managers that keep taking over from each
	// other.
	maxArmed = 4
	// armedWindows is the number of send windows within which an armed call starts: it may wait for the calls of the
	// account's other armed posts.
	armedWindows = 2
)

// ArmAhead returns how far in advance a crowd of the given size is claimed, which is long enough for all its claims to
// be stored.
func ArmAhead(posts int) time.Duration {
	return min(max(armAhead, time.Duration(posts)*time.Second/armRate), maxArmAhead)
}

// GroupState is the known state of an armed attempt's group.
type GroupState int

// The states of a group.
const (
	// GroupMayBeOpen: the group was opened, or nothing proves that it was not. Its calls may have been made.
	GroupMayBeOpen GroupState = iota
	// GroupUnread: another process has armed the group, and this process has not read it.
	GroupUnread
	// GroupClosed: the group was closed before it was opened, so that none of its calls was made.
	GroupClosed
)

// TakenBack is the error of an attempt whose group was closed.
var TakenBack = platforms.Errorf(platforms.ClassTransient, "the manager that claimed the post in advance stopped before the scheduled time, so nothing was sent")

// ArmedWindow returns the time after its claim within which the call of an armed post may start. until is the time
// between the claim and the post's due time.
func ArmedWindow(until, sendWindow time.Duration) time.Duration {
	return until + armedWindows*sendWindow
}

// reclaimArmed decides about the armed attempts of other processes. It returns no actions if all of them may have been
// sent. A closed group is no proof for an attempt from before a rollback, which may have undone the opening of the
// group.
func (f *Facts) reclaimArmed() []Action {
	var unread []string
	var unsent []Result
	for i := range f.Post.Status.Targets {
		t := &f.Post.Status.Targets[i]
		if !attempt.IsArmed(t.Attempt) || f.Group == nil || !t.Attempt.StartedAt.After(f.Rollback.DetectedAt) {
			continue
		}
		switch f.Group(t.Attempt.Group) {
		case GroupMayBeOpen:
		case GroupUnread:
			if !slices.Contains(unread, t.Attempt.Group) {
				unread = append(unread, t.Attempt.Group)
			}
		case GroupClosed:
			unsent = append(unsent, Result{Target: int(t.Index), Attempt: t.Attempt.ID, Result: platforms.Result{Outcome: platforms.NotSent, Withheld: true, Err: TakenBack}})
		}
	}
	switch {
	case len(unread) > 0:
		return []Action{TakeBack{unread}}
	case len(unsent) > 0:
		f.Results = unsent
		return []Action{Record{}}
	}
	return nil
}

// waitArmed decides about a post that was armed and is not due yet: its claims wait for their group, or were taken
// back. It returns no actions for other posts.
func (f *Facts) waitArmed() []Action {
	armed := slices.ContainsFunc(f.Post.Status.Targets, func(t v1alpha1.TargetStatus) bool { return t.Attempt != nil && t.Attempt.Group != "" })
	switch {
	case !armed || f.UntilDue(f.Now) <= 0 || f.Cancelled():
		return nil
	case f.anyOpen():
		return []Action{f.wait(time.Time{}, false)}
	}
	return f.schedule()
}

// Withheld returns the reason for not making the call of an armed target, or nil. The facts must be read just before
// the call.
func (f *Facts) Withheld(i int) *v1alpha1.Blocked {
	if f.Suspended {
		return new(suspended)
	}
	if problem := f.planProblem(i); problem != "" {
		return &v1alpha1.Blocked{Reason: v1alpha1.ReasonPlanLimit, Problem: problem}
	}
	return f.blocked(i)
}

// armable returns the targets of a post that can be claimed before it is due: all of them, or none. They are ready,
// nothing blocks them, and their calls do not upload files, so that many can be made at once. Trees are excluded,
// because their cards are claimed one after the other, and so are retries, because they are claimed when they are due,
// just after their targets are reserved.
func (f *Facts) armable() (targets []int) {
	until := f.UntilDue(f.Now)
	if !f.Crowded || f.Suspended || f.Cards() > 1 || f.Post.Spec.RetryOf != nil || until > maxArmAhead || until < minArmAhead {
		return nil
	}
	for i := range f.Post.Spec.Targets {
		if !f.mayArm(i) {
			return nil
		}
		targets = append(targets, i)
	}
	for _, i := range targets {
		f.setTryUntil(f.Target(i))
	}
	return targets
}

func (f *Facts) mayArm(i int) bool {
	t := f.Target(i)
	switch {
	case attempt.Settled(t), attempt.IsOpen(t.Attempt), attempt.AmbiguousSince(t) != nil:
		return false
	case t.Attempt != nil && t.Attempt.Number >= maxArmed:
		return false
	case t.NextTryAt != nil && t.NextTryAt.After(f.Due()):
		return false
	case f.blocked(i) != nil, f.credentialsProblem(i) != "", f.categoryProblem(i) != "", f.planProblem(i) != "":
		return false
	case f.NeedsProbe != nil && f.NeedsProbe(f.connection(i)):
		// The other posts of the app wait for the one that probes the platform.
		return false
	}
	p := f.Preparation(i)
	return p.State == PreparationNotNeeded || p.State == PreparationReady && !p.Secret
}
