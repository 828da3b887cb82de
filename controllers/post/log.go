// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"time"

	"github.com/go-logr/logr"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/controllers/post/internal/stats"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

// Log messages about the state of a target.
const (
	logPublished = "published"
	logLate      = "published late"
	logAccepted  = "accepted by the platform, which is processing it"
	logWaits     = "a target waits"
	logMend      = "a target is rejected until the post is corrected"
	logRefused   = "a target failed: the platform refused it"
	logFailed    = "a target failed"
	logCancelled = "a target was cancelled"
	logGivenUp   = "a target failed: its deadline has passed"
	logUnknown   = "the outcome of a target is unknown; a user must check the account"
)

// logTargets logs each target whose stored reason for waiting or failing has changed: one line per change, at info,
// however many reconciliations follow. Published targets are logged with the platform's response.
func logTargets(log logr.Logger, post *v1alpha1.Post, before *v1alpha1.PostStatus, now time.Time) {
	was := &v1alpha1.Post{Status: *before}
	for i := range post.Status.Targets {
		t := &post.Status.Targets[i]
		message := logMessage(t)
		if old := posting.Of(was).Target(int(t.Index)); message == "" || old != nil && logMessage(old) == message && old.Blocked.Reason == t.Blocked.Reason {
			continue
		}
		fields := append(targetFields(post, t), "reason", t.Blocked.Reason, "problem", t.Message)
		if late := lateness(post, now); late > 0 {
			fields = append(fields, "late", late)
		}
		if t.NextTryAt != nil && t.NextTryAt.After(now) {
			fields = append(fields, "triedAgainIn", t.NextTryAt.Sub(now).Round(time.Second))
		}
		if t.TryUntil != nil && t.TryUntil.After(now) {
			fields = append(fields, "givenUpIn", t.TryUntil.Sub(now).Round(time.Second))
		}
		log.Info(message, fields...)
	}
}

func logMessage(t *v1alpha1.TargetStatus) string {
	if t.Blocked == nil {
		return ""
	}
	switch posting.StateOf(t) {
	case v1alpha1.TargetPending:
		if t.Blocked.Reason == v1alpha1.ReasonInvalid {
			return logMend
		}
		return logWaits
	case v1alpha1.TargetFailed:
		return logOfFailure(t.Blocked.Reason)
	case v1alpha1.TargetUndecided:
		return logUnknown
	case v1alpha1.TargetPosted, v1alpha1.TargetWithdrawn:
		return ""
	default:
		return ""
	}
}

func logOfFailure(reason string) string {
	switch reason {
	case v1alpha1.ReasonMissedSchedule:
		return logGivenUp
	case v1alpha1.ReasonCancelled:
		return logCancelled
	case v1alpha1.ReasonRefused, v1alpha1.ReasonAccountRestricted:
		return logRefused
	default:
		return logFailed
	}
}

func targetFields(post *v1alpha1.Post, t *v1alpha1.TargetStatus) []any {
	fields := []any{"uid", post.UID, "target", t.Index}
	if t.Attempt != nil {
		fields = append(fields, "attempt", t.Attempt.ID)
	}
	if t.Platform != "" {
		fields = append(fields, "platform", t.Platform)
	}
	if int(t.Index) < len(post.Spec.Targets) {
		fields = append(fields, "connection", post.Spec.Targets[t.Index].ConnectionRef.Name)
	}
	return fields
}

// lateness returns the time since a post was due, in whole seconds, or zero if it is not due yet or is a draft.
func lateness(post *v1alpha1.Post, now time.Time) time.Duration {
	if post.Spec.Draft {
		return 0
	}
	return max(now.Sub(posting.Of(post).Due()).Round(time.Second), 0)
}

// logResult logs the response to a call after it is recorded. logTargets logs why a target is not published.
func logResult(p *reconciliation, d *publish.Delivery, now time.Time) {
	log := p.log.WithValues("uid", p.Post.UID, "target", d.Target, "attempt", d.Attempt, "platform", d.Conn.Spec.Platform, "connection", d.Conn.Name)
	switch d.Result.Outcome {
	case platforms.Posted:
		log = log.WithValues("externalID", d.Result.ExternalID)
		if late, reason := p.late(d.Target, now); late > stats.LateAfter {
			log.Info(logLate, "late", late, "reason", reason)
			return
		}
		log.Info(logPublished)
	case platforms.Accepted:
		log.Info(logAccepted, "operationID", d.Result.OperationID)
	case platforms.Refused, platforms.NotSent:
		log.V(1).Info("a call did not publish", "outcome", d.Result.Outcome, "problem", problem(d.Result.Err))
	case platforms.Unknown:
		log.Info("the outcome of a call is unknown; looking it up", "problem", problem(d.Result.Err))
	}
}

func problem(err *platforms.Error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// reasonTurn is the reason for a late target that nothing blocked: other posts came first, or no manager was running.
const reasonTurn = "Turn"

// late returns a published target's lateness, and the reason that blocked it before this reconciliation. An immediate
// post's upload does not count as lateness, nor do the earlier cards of a tree.
func (p *reconciliation) late(target int, now time.Time) (late time.Duration, reason string) {
	if t := p.Target(target); t != nil && len(t.Cards) > 1 {
		return 0, ""
	}
	reason = reasonTurn
	if t := posting.Of(&v1alpha1.Post{Status: p.stored}).Target(target); t != nil && t.Blocked != nil {
		reason = t.Blocked.Reason
	}
	if p.Post.Spec.ScheduledAt == nil && reason == v1alpha1.ReasonPreparing {
		return 0, ""
	}
	return lateness(p.Post, now), reason
}
