// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
)

// maxPrepareWait is the time for which a post's ready targets wait for another target to be prepared, so that one
// write can claim them all. A slower target is sent separately.
const maxPrepareWait = 3 * time.Second

type targets struct {
	preparations

	// ready targets can be claimed, and failed ones could not be prepared.
	ready, failed []int
	// retry maps the targets of a retry to those of the failed post; nil for other posts.
	retry []retryMatch
	// changed means that the status must be stored even if nothing is claimed.
	changed bool
	// forInputs means that a change to a connection or file requeues the post.
	forInputs bool
	// patientUntil is the time until which the ready targets wait for a preparation.
	patientUntil time.Time
}

// deliver decides what to do about every unsettled target. It first looks up open attempts, then claims ready targets.
func (f *Facts) deliver() []Action {
	f.ensureTargets()
	if actions := f.reclaimArmed(); actions != nil {
		return actions
	}
	if lookups := f.dueLookups(); len(lookups) > 0 {
		return []Action{Lookup{lookups}}
	}
	if actions := f.waitArmed(); actions != nil {
		return actions
	}
	if f.requiresOriginal() {
		return []Action{ReadOriginal{}}
	}
	d := targets{retry: f.matchRetry()}
	for i := range f.Post.Spec.Targets {
		if t := f.Target(i); !attempt.Settled(t) && !attempt.IsOpen(t.Attempt) {
			f.decideTarget(&d, i, t)
		}
	}
	actions := d.actions(f, false)
	if len(d.missing)+len(d.hold) > 0 && !f.SlotsRequested {
		return actions
	}
	if len(d.failed) > 0 {
		Describe(f.Post, f.Now) // ReportPreparation reads the status
	}
	for _, i := range d.failed {
		actions = append(actions, ReportPreparation{Target: i})
	}
	f.recordRetry(&d)
	if len(d.ready) > 0 && d.patientUntil.IsZero() {
		if targets := d.unreserved(); len(targets) > 0 {
			return []Action{ReserveRetry{targets}}
		}
		actions = append(actions, Claim{d.ready})
	}
	if d.changed || f.AllSettled() {
		actions = append(actions, Write{})
	}
	d.requeueAt(d.patientUntil)
	return append(actions, f.wait(d.holdsAt, d.forInputs))
}

func (f *Facts) dueLookups() (due []int) {
	for i := range f.Post.Status.Targets {
		t := &f.Post.Status.Targets[i]
		if !attempt.IsOpen(t.Attempt) {
			continue
		}
		if timing, _ := f.Timing(t.Platform); !attempt.NextLookup(t, timing).After(f.Now) {
			due = append(due, int(t.Index))
		}
	}
	return due
}

// finishedCalls returns the targets whose call is certain to have ended, regardless of when their next lookup is.
func (f *Facts) finishedCalls() (quiet []int) {
	for i := range f.Post.Status.Targets {
		t := &f.Post.Status.Targets[i]
		if timing, _ := f.Timing(t.Platform); attempt.IsOpen(t.Attempt) && attempt.CallFinished(t.Attempt, timing, f.Now) {
			quiet = append(quiet, int(t.Index))
		}
	}
	return quiet
}

// decideTarget decides whether a target that is neither settled nor open may be sent now, or records why not.
func (f *Facts) decideTarget(d *targets, i int, t *v1alpha1.TargetStatus) {
	// A deadline must be stored if a later reconciliation would arrive at a different one.
	d.changed = f.setTryUntil(t) || d.changed
	switch {
	case f.Cancelled(): // cancelled after a rollback, and partly published or undecided
		fail(t, notSentAnyMore)
		d.changed = true
		return
	case f.expired(t):
		f.expire(i, t)
		d.changed = true
		return
	case f.categoryProblem(i) != "":
		fail(t, v1alpha1.Blocked{Reason: v1alpha1.ReasonUnsupported, Problem: f.categoryProblem(i)})
		d.changed = true
		return
	case f.planProblem(i) != "":
		fail(t, v1alpha1.Blocked{Reason: v1alpha1.ReasonPlanLimit, Problem: f.planProblem(i)})
		d.changed = true
		return
	case t.NextTryAt != nil && t.NextTryAt.After(f.Now) && !f.recovered(i, t):
		d.forInputs = d.forInputs || attempt.BlockedBy(t, v1alpha1.ReasonConnectionNotReady)
		return
	}
	if f.decideRetry(d, i, t) {
		return
	}
	if b := f.blocked(i); b != nil {
		f.waitBlocked(d, i, t, b)
		return
	}
	if problem := f.credentialsProblem(i); problem != "" {
		d.forInputs = true
		d.changed = attempt.Block(t, v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady, Problem: problem}) || d.changed
		t.NextTryAt = v1alpha1.NewTimePtr(f.Now.Add(credentialsPause))
		return
	}
	if conn := f.connection(i); f.MayProbe != nil && !f.MayProbe(conn) {
		d.forInputs = true
		d.changed = !attempt.BlockedBy(t, v1alpha1.ReasonRateLimited) && attempt.Block(t, rateLimited(conn)) || d.changed
		return
	}
	f.decidePrepared(d, i, t)
}

func (f *Facts) waitBlocked(d *targets, i int, t *v1alpha1.TargetStatus, b *v1alpha1.Blocked) {
	d.forInputs = true
	d.changed = f.deadlines().extend(t, f.blockedUntil(i), f.Now) || d.changed
	if b.Reason == v1alpha1.ReasonRateLimited && attempt.BlockedBy(t, b.Reason) {
		return // the message does not change when a limit is extended, so a waiting post costs one write
	}
	d.changed = attempt.Block(t, *b) || d.changed
}

// decidePrepared decides about a target that lacks at most its preparation.
func (f *Facts) decidePrepared(d *targets, i int, t *v1alpha1.TargetStatus) {
	p := f.Preparation(i)
	if f.Suspended && p.State != PreparationFailed {
		f.blockSuspended(d, i, t, &p)
		return
	}
	switch p.State {
	case PreparationNotNeeded, PreparationReady, PreparationVisible:
		// Content that is already visible is claimed so that it is looked up.
		d.ready = append(d.ready, i)
	case PreparationMissing:
		if !f.startPreparation(&d.preparations, i, t, &p) {
			f.blockPreparing(d, i, t, &p)
		}
	case PreparationRunning:
		if f.losePreparation(&d.preparations, i, t, &p) {
			return
		}
		if until := p.BegunAt.Add(maxPrepareWait); until.After(f.Now) {
			if d.patientUntil.IsZero() || until.Before(d.patientUntil) {
				d.patientUntil = until
			}
			return
		}
		d.changed = f.continuePreparation(&d.preparations, t, &p, f.shares(i)) || d.changed
		f.blockPreparing(d, i, t, &p)
	case PreparationFailed:
		if f.losePreparation(&d.preparations, i, t, &p) {
			return
		}
		if p.Ahead {
			f.startPreparation(&d.preparations, i, t, &p) // the post is due, so the retry is immediate
			return
		}
		f.recordProgress(t, &p)
		endHold(t)
		f.notPrepared(i, t, p.Err)
		d.failed = append(d.failed, i)
		d.changed, d.forInputs = true, true
	}
}

// blockPreparing records that a target waits for its preparation, in this process or in another one.
func (f *Facts) blockPreparing(d *targets, i int, t *v1alpha1.TargetStatus, p *Preparation) {
	if (t.Blocked == nil || isOver(t.Blocked.Reason) || p.Converting && t.Blocked.Reason == v1alpha1.ReasonPreparing) && !attempt.WillResend(t) {
		d.changed = attempt.Block(t, v1alpha1.Blocked{Reason: v1alpha1.ReasonPreparing, Problem: p.doing(f.connection(i).Spec.Platform)}) || d.changed
	}
}

// isOver reports whether a running preparation disproves a blocking reason: it needs the connection and the files.
func isOver(reason string) bool {
	return reason == v1alpha1.ReasonConnectionNotReady || reason == v1alpha1.ReasonMediaNotReady
}

func (p *Preparation) doing(platform v1alpha1.Platform) string {
	if p.Converting {
		return fmt.Sprintf("the video is being converted for %s, %d %% is done; the post is published when it is finished", platform, p.Converted)
	}
	return fmt.Sprintf("the post's content is being uploaded to %s or processed there; the post is published when that is done", platform)
}

func (f *Facts) notPrepared(i int, t *v1alpha1.TargetStatus, err *platforms.Error) {
	since := f.Now
	if t.TryUntil != nil {
		since = t.TryUntil.Add(-f.Settings.StartingDeadline)
	}
	if e := f.deadlines().apply(t, err, f.Now, func() error { return attempt.RecordNotPrepared(t, err, since, f.Now) }); e != nil {
		panic(fmt.Sprintf("target %d is prepared although it is open or settled: %v", i, e))
	}
}

// recordProgress records a preparation's progress, for another process to continue. It reports whether it changed.
func (f *Facts) recordProgress(t *v1alpha1.TargetStatus, p *Preparation) (changed bool) {
	known := t.Prepared
	secret, hash := p.recordedSecret(known)
	if p.Checkpoint == "" || known != nil && known.ContentHash == p.Hash && known.Checkpoint == p.Checkpoint && known.SecretHash == hash {
		return false
	}
	next := v1alpha1.Prepared{ContentHash: p.Hash, Checkpoint: p.Checkpoint, Secret: secret, SecretHash: hash, MadeAt: v1alpha1.NewTime(f.Now)}
	if known != nil && known.ContentHash == p.Hash {
		next.By = known.By
	}
	t.Prepared = &next
	return true
}

func (f *Facts) recovered(i int, t *v1alpha1.TargetStatus) bool {
	conn := f.connection(i)
	return attempt.BlockedBy(t, v1alpha1.ReasonConnectionNotReady) && conn != nil && t.Attempt != nil &&
		conn.Status.LastHandledProbe == t.Attempt.ID && f.connectionProblem(i) == nil
}

// expire fails a target after its deadline, for the reason that blocked it. If an earlier call may have published it,
// the message asks the user to check the account instead of creating a new post.
func (f *Facts) expire(i int, t *v1alpha1.TargetStatus) {
	why := f.expiryReason(i, t)
	if !attempt.BlockedBy(t, v1alpha1.ReasonInvalid) {
		why.Reason = v1alpha1.ReasonMissedSchedule
	}
	switch {
	case attempt.AmbiguousSince(t) != nil:
	case t.Blocked != nil:
		why.Problem = fmt.Sprintf("not published within %s of its time. The reason was: %s", f.tryDuration(t), why.Problem)
	default:
		why.Problem = "not published: " + why.Problem
	}
	fail(t, why)
}

// tryDuration returns how long a target was tried, including the pauses that its platform announced.
func (f *Facts) tryDuration(t *v1alpha1.TargetStatus) time.Duration {
	if t.InitialDeadline == nil {
		return f.Settings.StartingDeadline
	}
	return f.Settings.StartingDeadline + t.TryUntil.Sub(t.InitialDeadline.Time)
}

func (f *Facts) expiryReason(i int, t *v1alpha1.TargetStatus) v1alpha1.Blocked {
	until := f.blockedUntil(i)
	switch {
	case t.Blocked != nil && t.Blocked.Remedy != "":
		return v1alpha1.Blocked{Reason: t.Blocked.Reason, Problem: t.Blocked.Problem, Remedy: t.Blocked.Remedy + ", and post again"}
	case t.Blocked != nil:
		return v1alpha1.Blocked{Reason: t.Blocked.Reason, Problem: t.Blocked.Problem, Remedy: "post again"}
	case !until.IsZero():
		return v1alpha1.Blocked{
			Problem: fmt.Sprintf("its time passed more than %s ago, and the platform does not accept calls for this account before %s",
				f.Settings.StartingDeadline, v1alpha1.NewTime(until)),
			Remedy: "schedule a new post for later",
		}
	case f.Preparation(i).State == PreparationRunning:
		return v1alpha1.Blocked{
			Problem: fmt.Sprintf("the steps before the visible call, such as uploading its files, were not done within %s of its time", f.Settings.StartingDeadline),
			Remedy:  "use smaller files, or schedule a new post for later, so that they are uploaded in time",
		}
	default:
		return v1alpha1.Blocked{
			Problem: fmt.Sprintf("its time passed more than %s ago (Herald was not running, or other posts of the account were ahead of it)",
				f.Settings.StartingDeadline),
			Remedy: "schedule a new post",
		}
	}
}

// blockedSpread is the period over which a connection's posts are requeued after a rate limit. The account's gate
// admits only one call at a time anyway.
const blockedSpread = 2 * time.Second

// wait requeues the post for the time when its first unsettled target needs attention, or for an earlier patientUntil
// if set.
func (f *Facts) wait(patientUntil time.Time, forInputs bool) Wait {
	next := patientUntil
	for i := range f.Post.Spec.Targets {
		t := f.Target(i)
		if t == nil || attempt.Settled(t) {
			continue
		}
		if at := f.wakeTime(i, t); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return Wait{Until: next, ForInputs: forInputs}
}

// wakeTime returns the time when a target needs attention. A target that waits for its turn or for a preparation is
// requeued by events, or at the latest at its deadline.
func (f *Facts) wakeTime(i int, t *v1alpha1.TargetStatus) time.Time {
	if attempt.IsOpen(t.Attempt) {
		timing, _ := f.Timing(t.Platform)
		return attempt.NextLookup(t, timing).Add(time.Millisecond)
	}
	var at time.Time
	if t.TryUntil != nil && !f.mayShift(t) {
		at = t.TryUntil.Add(time.Millisecond)
	}
	if t.NextTryAt != nil && t.NextTryAt.After(f.Now) && (at.IsZero() || t.NextTryAt.Before(at)) {
		at = t.NextTryAt.Time
	}
	if until := f.blockedUntil(i); !until.IsZero() {
		if until = until.Add(f.spread(blockedSpread)); at.IsZero() || until.Before(at) {
			at = until
		}
	}
	return at
}
