// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postschedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/recurrence"
)

// refusal is the state of a schedule whose next post cannot be created, and when to try again.
type refusal struct {
	conditions.Summary

	again time.Duration
}

// postOf returns the post of an occurrence. It has the label of its team's shard, so that the leader does not have to
// add it in another write.
func postOf(s *v1alpha1.PostSchedule, o recurrence.Occurrence, team *v1alpha1.Team) *v1alpha1.Post {
	post := recurrence.PostOf(s, o)
	if team != nil && team.Status.Shard != "" {
		post.Labels[v1alpha1.ShardLabel] = team.Status.Shard
	}
	return post
}

// create creates the posts of a decision in order, and records each in the status. If there are none, it checks whether
// the Kubernetes API would accept them, unless that is already known.
func (r *Reconciler) create(ctx context.Context, s *v1alpha1.PostSchedule, d *recurrence.Decision, team *v1alpha1.Team) (*refusal, error) {
	if len(d.Create) == 0 && !d.Next.IsZero() && (s.Status.ObservedGeneration != s.Generation || !conditions.IsReady(s.Status.Conditions)) {
		return r.try(ctx, s, d.Next, team)
	}
	for _, occurrence := range d.Create {
		post := postOf(s, occurrence, team)
		err := r.createPost(ctx, s, post)
		if refused := explain(err, post, team); refused != nil {
			r.Metrics.increment(refusedPost)
			return refused, nil
		}
		if err != nil {
			return nil, err
		}
		s.Status.Posts, s.Status.LastScheduledTime = s.Status.Posts+1, v1alpha1.NewTimePtr(occurrence.At)
	}
	return nil, nil //nolint:nilnil // neither a refusal nor an error is the good case
}

// try checks the posts of all texts with dry runs, so that a mistake is reported when the schedule is applied.
func (r *Reconciler) try(ctx context.Context, s *v1alpha1.PostSchedule, at time.Time, team *v1alpha1.Team) (*refusal, error) {
	for n := range max(1, len(s.Spec.Texts)) {
		post := postOf(s, recurrence.Occurrence{At: at, Number: int32(n)}, team)
		err := r.Client.Create(ctx, post, client.DryRunAll)
		if apierrors.IsAlreadyExists(err) {
			return nil, nil //nolint:nilnil // as in create: it is examined when the time comes
		}
		if refused := explain(err, post, team); refused != nil {
			if len(s.Spec.Texts) > 1 {
				refused.Message = fmt.Sprintf("with spec.texts[%d]: %s", n, refused.Message)
			}
			return refused, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot check the posts of the schedule: %w", err)
		}
	}
	return nil, nil //nolint:nilnil // as in create
}

// errAwaitingDeletion means that a post of a deleted schedule still has the name of the post to create.
var errAwaitingDeletion = errors.New("a post of a deleted schedule has the same name")

// createPost creates a post. It returns nil if it exists already.
func (r *Reconciler) createPost(ctx context.Context, s *v1alpha1.PostSchedule, post *v1alpha1.Post) error {
	_, err := quota.CreateWithRetry(ctx, func() (struct{}, error) { return struct{}{}, r.Client.Create(ctx, post) })
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.examine(ctx, s, post)
	case err != nil:
		return fmt.Errorf("cannot create post %q: %w", post.Name, err)
	}
	r.Metrics.increment(created)
	r.event(s, post, corev1.EventTypeNormal, v1alpha1.ReasonPostCreated, fmt.Sprintf("created post %s", post.Name))
	return nil
}

// examine checks an existing post with the name of the one to create. Any such post counts as the occurrence's, because
// a second one could publish it twice. The exception is a post that is deleted with an earlier schedule of the same
// name.
func (r *Reconciler) examine(ctx context.Context, s *v1alpha1.PostSchedule, post *v1alpha1.Post) error {
	var found v1alpha1.Post
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(post), &found)
	if apierrors.IsNotFound(err) {
		return errAwaitingDeletion // it is gone now
	}
	if err != nil {
		return fmt.Errorf("cannot read post %q: %w", post.Name, err)
	}
	if metav1.IsControlledBy(&found, s) {
		return nil
	}
	owner := metav1.GetControllerOf(&found)
	if !found.DeletionTimestamp.IsZero() || owner != nil && owner.Kind == "PostSchedule" {
		return errAwaitingDeletion
	}
	return nil
}

// explain returns the state of a schedule whose post was rejected with an error, or nil for other errors.
func explain(err error, post *v1alpha1.Post, team *v1alpha1.Team) *refusal {
	exceeded, isQuota := quota.ParseExceeded(err)
	switch {
	case errors.Is(err, errAwaitingDeletion):
		return waiting(v1alpha1.ReasonAwaitingDeletion, "a deleted schedule's post has the next post's name, and is still being deleted", deletionPause)
	case isQuota && team != nil:
		return waiting(v1alpha1.ReasonBudgetLimit, plan.QuotaRefusalMessage(exceeded.Kind, team.Name, exceeded.Used, exceeded.Limit), refusedPause)
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return waiting(v1alpha1.ReasonRefused, "the Kubernetes API rejects the posts: "+describe(err, post), refusedPause)
	case apierrors.IsInvalid(err) && isBudget(err):
		return waiting(v1alpha1.ReasonBudgetLimit, describe(err, post), refusedPause)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &refusal{invalid("the posts are invalid: " + describe(err, post)), invalidPause}
	default:
		return nil
	}
}

func waiting(reason, message string, again time.Duration) *refusal {
	return &refusal{conditions.Summary{Reason: reason, Message: message, Progress: conditions.Underway}, again}
}

// isBudget reports whether the webhook rejected a post because of the team's budget.
func isBudget(err error) bool {
	_, found := apierrors.StatusCause(err, metav1.CauseTypeForbidden)
	return found && strings.Contains(err.Error(), "spec.budget.")
}

// describe returns the causes of a rejection, with paths in the schedule. They are the same for each post, so that the
// message does not change.
func describe(err error, post *v1alpha1.Post) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	var causes []string
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			path := strings.Replace(cause.Field, "spec.", "spec.template.", 1)
			causes = append(causes, strings.TrimPrefix(path+": "+cause.Message, ": ")) // policies name no field
		}
	}
	if len(causes) > 0 {
		return strings.Join(causes, "; ")
	}
	return strings.ReplaceAll(status.Status().Message, fmt.Sprintf(" %q", post.Name), "")
}
