// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// deliver works on every target that is not settled: it looks for calls whose
// answer was lost, and publishes what is ready. It returns when the next
// target wants attention.
func (s *scope) deliver(ctx context.Context) (time.Duration, error) {
	if err := s.loadConnections(ctx); err != nil {
		return 0, err
	}
	if err := s.loadMedia(ctx); err != nil {
		return 0, err
	}
	deleting := !s.post.DeletionTimestamp.IsZero()
	if !deleting {
		s.noteTargets()
	}
	if err := s.settle(ctx); err != nil {
		return 0, err
	}
	if deleting {
		return s.afterSettlingForDeletion(ctx)
	}
	ready, waited := s.readyTargets()
	if len(ready) > 0 && ctx.Err() == nil {
		if err := s.publish(ctx, ready, waited); err != nil {
			return 0, err
		}
	} else if waited || posting.AllSettled(s.post) {
		if _, err := s.write(ctx); err != nil {
			return 0, err
		}
	}
	return s.nextWake(), nil
}

func (s *scope) afterSettlingForDeletion(ctx context.Context) (time.Duration, error) {
	for i := range s.post.Status.Targets {
		if attempt.IsOpen(s.post.Status.Targets[i].Attempt) {
			return s.nextWake(), nil
		}
	}
	return 0, s.removeFinalizer(ctx)
}

// readyTargets lists the targets that may be sent now. waited tells that the
// ledger notes something new of a target that waits.
func (s *scope) readyTargets() (ready []int, waited bool) {
	now := s.Clock.Now()
	for i := range s.post.Spec.Targets {
		t := posting.Target(s.post, i)
		if posting.Settled(s.post, i) || attempt.IsOpen(t.Attempt) {
			continue
		}
		if t.TryUntil == nil {
			until, fixed := posting.TryUntil(s.post, now, s.StartingDeadline)
			t.TryUntil = v1alpha1.NewTimePtr(until)
			// What the next pass would not find again must be stored.
			waited = waited || !fixed
		}
		goes, changed := s.mayGo(i, t, now)
		if waited = waited || changed; goes {
			ready = append(ready, i)
		}
	}
	return ready, waited
}

// mayGo reports whether a target that is neither settled nor in doubt may be
// sent now. changed tells that the ledger notes why not.
func (s *scope) mayGo(i int, t *v1alpha1.TargetStatus, now time.Time) (goes, changed bool) {
	if now.After(t.TryUntil.Time) {
		return false, s.giveUp(i, t)
	}
	if message := s.undeliverable(i); message != "" {
		return false, attempt.Fail(t, v1alpha1.ReasonUnsupported, message) == nil
	}
	if message := s.beyondPlan(i); message != "" {
		return false, attempt.Fail(t, v1alpha1.ReasonPlanLimit, message) == nil
	}
	if t.NextTryAt != nil && t.NextTryAt.After(now) {
		if t.Reason == v1alpha1.ReasonConnectionNotReady {
			s.waitForConnections()
		}
		if !s.recovered(i) {
			return false, false
		}
	}
	if message := s.connectionProblem(i); message != "" {
		return false, s.waitForConnection(i, t, message)
	}
	if message := s.fileProblem(i); message != "" {
		return false, s.waitFor(i, t, v1alpha1.ReasonMediaNotReady, message)
	}
	if !s.heldUntil(i, now).IsZero() {
		s.waitForConnections()
		return false, s.waitForRoom(i, t)
	}
	return true, false
}

// waitForRoom notes that target i waits until its platform takes calls again.
// The words stay the same however often that is put off: they cost a post that
// waits one write.
func (s *scope) waitForRoom(i int, t *v1alpha1.TargetStatus) (changed bool) {
	if t.Reason == v1alpha1.ReasonRateLimited {
		return false
	}
	conn := s.connection(i)
	return s.waitFor(i, t, v1alpha1.ReasonRateLimited, fmt.Sprintf(
		"%s takes no posts of connection %q for now; the status of the connection, or of another one to %[1]s if the limit is that of the whole app, says why and until when",
		conn.Spec.Platform, conn.Name))
}

// undeliverable says why target i cannot be published by this version of
// Herald, or "". What is not delivered whole is not delivered at all.
func (s *scope) undeliverable(i int) string {
	conn := s.connection(i)
	if conn == nil {
		return ""
	}
	p, ok := s.Platforms[conn.Spec.Platform]
	if !ok || p.Capabilities().CanDeliver(s.post.Spec.Category) && (s.post.Spec.Tree == nil || p.Capabilities().CanDeliver(v1alpha1.CategoryImage) || len(posting.MediaNames(&s.post.Spec)) == 0) {
		return ""
	}
	return fmt.Sprintf("not published: this version of Herald does not deliver posts of category %s to %s yet", s.post.Spec.Category, conn.Spec.Platform)
}

// giveUp fails a target whose time to be tried has run out, with the reason
// for which it waited. If an earlier call may have published it, what to do is
// to look, and not to post again.
func (s *scope) giveUp(i int, t *v1alpha1.TargetStatus) (changed bool) {
	reason, hindered, advice := s.hindrance(i, t)
	message := fmt.Sprintf("not published: %s; %s", hindered, advice)
	switch {
	case attempt.DoubtSince(t) != nil:
		message = hindered
	case reason == t.Reason:
		message = fmt.Sprintf("not published within %s of its time; %s. What was in the way: %s", s.StartingDeadline, advice, hindered)
	}
	s.preparations.drop(s.key, i)
	return attempt.Fail(t, reason, message) == nil
}

// hindrance says what kept target i from being published in time, and what to
// do next time. Where it has waited for something, the reason is the one for
// which it waited.
func (s *scope) hindrance(i int, t *v1alpha1.TargetStatus) (reason, hindered, advice string) {
	until := s.heldUntil(i, s.Clock.Now())
	switch {
	case waitedFor[t.Reason] && !attempt.SendsAgain(t):
		// What a platform's words promise for a post that waits does not hold
		// for one that has failed.
		hindered, _, _ = strings.Cut(t.Message, "; Herald tries again")
		return t.Reason, hindered, "post again"
	case !until.IsZero():
		return v1alpha1.ReasonRateLimited, fmt.Sprintf("the platform takes no calls for this account before %s", v1alpha1.NewTime(until)), "post again later"
	case s.preparations.underWay(s.key, i):
		return v1alpha1.ReasonMissedSchedule,
			fmt.Sprintf("what precedes the visible call, such as the upload of its files, was not done within %s of its time", s.StartingDeadline),
			"use smaller files, or schedule a new post for later, so that they are uploaded ahead of its time"
	default:
		return v1alpha1.ReasonMissedSchedule,
			fmt.Sprintf("its time passed more than %s ago (Herald was not running, or other posts of the account were in front of it)", s.StartingDeadline),
			"schedule a new post"
	}
}

// waitedFor are the reasons that say what a target waits for.
var waitedFor = map[string]bool{
	v1alpha1.ReasonRateLimited: true, v1alpha1.ReasonPlatformBusy: true, v1alpha1.ReasonConnectionNotReady: true,
	v1alpha1.ReasonMediaNotReady: true, v1alpha1.ReasonPreparing: true, v1alpha1.ReasonUsageUnavailable: true,
}

// recovered reports whether the connection that refused target i has been
// checked since and found good.
func (s *scope) recovered(i int) bool {
	conn := s.connection(i)
	t := posting.Target(s.post, i)
	return t.Reason == v1alpha1.ReasonConnectionNotReady && conn != nil && t.Attempt != nil &&
		conn.Status.LastHandledProbe == t.Attempt.ID && s.connectionProblem(i) == ""
}

// waitForConnection notes that target i waits for its connection.
func (s *scope) waitForConnection(i int, t *v1alpha1.TargetStatus, message string) (changed bool) {
	s.waitForConnections()
	return s.waitFor(i, t, v1alpha1.ReasonConnectionNotReady, message)
}

// waitFor notes what target i waits for.
func (s *scope) waitFor(i int, t *v1alpha1.TargetStatus, reason, message string) (changed bool) {
	changed = t.Reason != reason || t.Message != message
	t.Phase = posting.TargetPhaseOf(s.post, i)
	t.Reason, t.Message = reason, truncate(message, maxMessage)
	t.NextTryAt = nil
	return changed
}

// connectionProblem says why target i cannot be published to now, or "".
func (s *scope) connectionProblem(i int) string {
	name := s.post.Spec.Targets[i].ConnectionRef.Name
	conn := s.connection(i)
	if conn == nil {
		return fmt.Sprintf("connection %q does not exist; create it, or delete this post", name)
	}
	if _, ok := s.publisher(conn.Spec.Platform); !ok {
		return fmt.Sprintf("this installation cannot publish to %s", conn.Spec.Platform)
	}
	if conn.Spec.Disabled {
		return fmt.Sprintf("connection %q is disabled; enable it to publish", name)
	}
	ready := meta.FindStatusCondition(conn.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return fmt.Sprintf("connection %q has not been checked yet", name)
	case ready.Status == metav1.ConditionTrue, ready.Reason == v1alpha1.ReasonPlatformUnavailable:
		// A platform that could not be asked a moment ago may well take a
		// post now; the call itself will tell.
		return ""
	default:
		return fmt.Sprintf("connection %q is not ready: %s", name, ready.Message)
	}
}

// nextWake is when the earliest target that is not settled wants attention;
// zero if none does before something happens that wakes the post.
func (s *scope) nextWake() time.Duration {
	now := s.Clock.Now()
	next := s.patientUntil
	for i := range s.post.Spec.Targets {
		t := posting.Target(s.post, i)
		if t == nil || posting.Settled(s.post, i) {
			continue
		}
		if at := s.wakeOf(i, t, now); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}

// wakeOf is when a target wants attention. One that waits for its turn or
// for a preparation is woken by them, and by the end of its time at the latest.
func (s *scope) wakeOf(i int, t *v1alpha1.TargetStatus, now time.Time) time.Time {
	if attempt.IsOpen(t.Attempt) {
		if timing, ok := s.timing(t); ok {
			return attempt.NextLookup(t, timing).Add(time.Millisecond)
		}
	}
	var at time.Time
	if t.TryUntil != nil {
		at = t.TryUntil.Add(time.Millisecond)
	}
	if t.NextTryAt != nil && t.NextTryAt.After(now) && (at.IsZero() || t.NextTryAt.Before(at)) {
		at = t.NextTryAt.Time
	}
	if until := s.heldUntil(i, now); !until.IsZero() {
		if until = until.Add(s.spread(heldSpread)); at.IsZero() || until.Before(at) {
			at = until
		}
	}
	return at
}

// timing is what the protocol works with on the platform of a target.
func (s *scope) timing(t *v1alpha1.TargetStatus) (attempt.Timing, bool) {
	p, ok := s.publisher(t.Platform)
	if !ok {
		return attempt.Timing{}, false
	}
	limits := p.Capabilities()
	return attempt.Timing{
		SendWindow:    s.SendWindow,
		CallTimeout:   limits.CallTimeout,
		ClockMargin:   s.ClockMargin,
		Lag:           limits.ListingLag,
		GiveUpAfter:   s.StartingDeadline,
		Authoritative: limits.ListingAuthoritative,
	}, true
}
