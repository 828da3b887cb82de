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

// The posts of a crowd, which are due at the same time, are armed: claimed ahead of it, each in a group. At that time
// one write opens a group, and only then are its calls made. Whoever closes a group before it was opened has proof that
// nothing of it was sent. See docs/adr/0026.

const (
	// armAhead is how long before their time the posts of a crowd are claimed, and armAheadAtMost the same for the largest crowds:
	// its groups have room for some 5,000 posts.
	// An armed post cannot be cancelled.
	armAhead, armAheadAtMost = 15 * time.Second, 50 * time.Second
	// armRate is the number of claims per second for which a crowd has time. Kubernetes on two processors, which all parts of Herald
	// share, stores about 165 (docs/performance.md, B7).
	armRate = 100
	// armUntil is how long before its time a post is still armed: its group must not be opened before it is claimed.
	armUntil = time.Second
	// maxArmed is how often a post is armed. Two managers that take over from each other stop there.
	maxArmed = 4
	// armedWindows is the number of send windows within which an armed call starts: it may wait for the calls of the
	// account's other armed posts.
	armedWindows = 2
)

// ArmAhead returns how long before its time a crowd of that many posts is claimed: long enough for all its claims to be stored.
func ArmAhead(posts int) time.Duration {
	return min(max(armAhead, time.Duration(posts)*time.Second/armRate), armAheadAtMost)
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
var TakenBack = platforms.Errorf(platforms.ClassTransient, "the manager that had claimed the post ahead of its time stopped before then, so nothing was sent")

// ArmedWindow returns how long after its claim the call of an armed post may start, if the post is due after until.
func ArmedWindow(until, sendWindow time.Duration) time.Duration {
	return until + armedWindows*sendWindow
}

// reclaimArmed decides about the armed attempts of other processes. It returns no actions if all of them may have been
// sent. A group is not proof for an attempt from before a rollback, which may have closed it again.
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

// waitArmed decides about a post that was armed and is not due: its claims wait for their group, or were taken back. It
// returns no actions for other posts.
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

// Withheld returns why the call of an armed target is not made, or nil. The facts are those just before the call.
func (f *Facts) Withheld(i int) *v1alpha1.Blocked {
	if f.Suspended {
		return new(suspended)
	}
	if problem := f.planProblem(i); problem != "" {
		return &v1alpha1.Blocked{Reason: v1alpha1.ReasonPlanLimit, Problem: problem}
	}
	return f.blocked(i)
}

// armable returns the targets of a post that can be claimed ahead of its time: all of them, or none. They are ready,
// nothing blocks them, and their calls do not upload files, so that many can be made at once. The cards of a tree
// follow each other and are claimed one after the other. Retries are claimed when they are due, just after their
// targets are reserved.
func (f *Facts) armable() (targets []int) {
	until := f.UntilDue(f.Now)
	if !f.Crowded || f.Suspended || f.Cards() > 1 || f.Post.Spec.RetryOf != nil || until > armAheadAtMost || until < armUntil {
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
		// The other posts of the app wait for the one that tries out the platform.
		return false
	}
	p := f.Preparation(i)
	return p.State == PreparationNotNeeded || p.State == PreparationReady && !p.Secret
}
