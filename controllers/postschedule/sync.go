// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postschedule

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/posting/recurrence"
)

// sync creates the posts that are due to be created, and records them in the status. It returns the state of the
// schedule and the requeue delay; zero means that it waits for a change.
func (r *Reconciler) sync(ctx context.Context, s *v1alpha1.PostSchedule) (conditions.Summary, time.Duration, error) {
	team, err := r.Owner(ctx, s.Namespace)
	if err != nil {
		return conditions.Summary{}, 0, err
	}
	owned, err := r.Owned(ctx, s.Namespace)
	if err != nil {
		return conditions.Summary{}, 0, err
	}
	zone := s.Spec.TimeZone
	if team != nil {
		zone = cmp.Or(zone, team.Spec.TimeZone)
	}
	if err := r.reportRepeats(ctx, s); err != nil {
		return conditions.Summary{}, 0, err
	}
	rule, err := recurrence.Parse(s.Spec.Schedule, cmp.Or(zone, "UTC"))
	if err != nil {
		s.Status.NextScheduledTime = nil
		return invalid(err.Error()), 0, nil
	}
	now := r.Clock.Now()
	// A team that is moved to another shard resumes within seconds.
	held := !owned || s.Spec.Suspend || team != nil && team.Suspended() && (team.Spec.Suspend || !team.Moving())
	decision := recurrence.Decide(rule, recurrence.Facts{Schedule: s, Held: held, StartingDeadline: r.StartingDeadline, Now: now})
	r.record(s, &decision)
	refused, err := r.create(ctx, s, &decision, team)
	if err != nil {
		return conditions.Summary{}, 0, err
	}
	again := longestRest
	switch wake := decision.Wake.Sub(now); {
	case refused != nil:
		return refused.Summary, refused.again, nil
	case decision.Wake.IsZero():
		again = 0
	case wake < longestRest:
		again = max(wake, time.Millisecond)
	}
	return summarize(s, &decision, owned), again, nil
}

func summarize(s *v1alpha1.PostSchedule, d *recurrence.Decision, owned bool) conditions.Summary {
	settled := conditions.Summary{Ready: true, Progress: conditions.Settled}
	switch {
	case !owned:
		return conditions.NoTeam(s.Namespace)
	case d.Complete:
		settled.Reason, settled.Message = v1alpha1.ReasonComplete, "all posts were created; to continue, raise spec.count or spec.endAt"
	case s.Spec.Suspend:
		settled.Reason, settled.Message = v1alpha1.ReasonSuspended, "suspended by spec.suspend; no posts are created"
	case d.Next.IsZero():
		settled.Reason, settled.Message = v1alpha1.ReasonSuspended, "the team is suspended; no posts are created until an administrator resumes it"
	default:
		settled.Reason, settled.Message = v1alpha1.ReasonScheduled, "each post is created an hour before its time"
	}
	return settled
}

func invalid(message string) conditions.Summary {
	return conditions.Summary{Reason: v1alpha1.ReasonInvalid, Message: message, Progress: conditions.Stuck}
}

// record records the parts of a decision that do not depend on created posts.
func (r *Reconciler) record(s *v1alpha1.PostSchedule, d *recurrence.Decision) {
	s.Status.NextScheduledTime = nil
	if !d.Next.IsZero() {
		s.Status.NextScheduledTime = v1alpha1.NewTimePtr(d.Next)
	}
	if !d.SkipThrough.IsZero() {
		s.Status.SkippedThrough = v1alpha1.NewTimePtr(d.SkipThrough)
	}
	if d.Missed.IsZero() {
		return
	}
	r.Metrics.increment(missed)
	r.event(s, nil, corev1.EventTypeWarning, v1alpha1.ReasonMissedSchedule,
		fmt.Sprintf("skipped the post of %s and any later ones that have passed, except the last: they could not be created in time", v1alpha1.NewTime(d.Missed)))
}

// reportRepeats sets or removes the TextRepeats condition.
func (r *Reconciler) reportRepeats(ctx context.Context, s *v1alpha1.PostSchedule) error {
	var failed error
	message := recurrence.RepeatedText(s, func(name string) v1alpha1.Platform {
		var connection v1alpha1.Connection
		if err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: name}, &connection); err != nil && !apierrors.IsNotFound(err) {
			failed = fmt.Errorf("cannot read connection %q: %w", name, err)
		}
		return connection.Spec.Platform
	})
	switch {
	case failed != nil:
		return failed
	case message == "":
		meta.RemoveStatusCondition(&s.Status.Conditions, v1alpha1.ConditionTextRepeats)
	case meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionTextRepeats, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSameText, Message: message,
		ObservedGeneration: s.Generation, LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	}):
		r.event(s, nil, corev1.EventTypeWarning, v1alpha1.ReasonSameText, message)
	}
	return nil
}

func (r *Reconciler) event(s *v1alpha1.PostSchedule, post *v1alpha1.Post, kind, reason, note string) {
	if r.Events == nil {
		return
	}
	if post == nil {
		r.Events.Eventf(s, nil, kind, reason, "Reconcile", "%s", note)
		return
	}
	r.Events.Eventf(s, post, kind, reason, "Reconcile", "%s", note)
}
