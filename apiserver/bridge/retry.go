// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// RetryPost is a request to retry a failed post.
type RetryPost struct {
	// ID is the id of the failed post.
	ID string
	// IdempotencyKey makes the request safe to repeat; empty for none.
	IdempotencyKey string
}

// retryOf identifies a request to retry a post, regardless of the post's content at that time.
type retryOf struct {
	RetryOf string `json:"retryOf"`
}

// RetryPost creates a post that immediately publishes a failed post's content to every account on which it has provably
// published nothing. A repeated request returns the post that the first one created.
func (s *Service) RetryPost(ctx context.Context, caller Caller, in RetryPost) (PostDetail, error) {
	if err := s.RequireSubscription(caller); err != nil {
		return PostDetail{}, err
	}
	if err := require(caller, ScopeDraft); err != nil {
		return PostDetail{}, err
	}
	identity := retryOf{in.ID}
	// The first request has reserved the targets by now, so it is looked up before they are chosen.
	first := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace}}
	if err := identify(&first.ObjectMeta, &caller, postPrefix, in.IdempotencyKey, identity); err != nil {
		return PostDetail{}, err
	}
	if detail, found, err := s.earlier(ctx, first); found || err != nil {
		return detail, err
	}
	post, err := s.read(ctx, caller, in.ID)
	if err != nil {
		return PostDetail{}, err
	}
	if refused := s.notRetriable(post); refused != nil {
		return PostDetail{}, refused
	}
	like, err := s.duplicate(ctx, caller, post, posting.Of(post).Retriable)
	if err != nil {
		return PostDetail{}, err
	}
	if len(like.Omitted) > 0 {
		return PostDetail{}, errorf(CodeConflict, "post %s cannot be retried as it is: %s. Create a new post instead.", in.ID, JoinProblems(like.Omitted))
	}
	like.Spec.RetryOf = &v1alpha1.LocalReference{Name: post.Name}
	return s.CreatePost(ctx, caller, CreatePost{Spec: like.Spec, IdempotencyKey: in.IdempotencyKey, Identity: identity})
}

// notRetriable returns the error for a post with no target that can be retried, or nil.
func (s *Service) notRetriable(post *v1alpha1.Post) *Error {
	view := posting.Of(post)
	switch {
	case isArchived(post):
		return errorf(CodeConflict, "post %s is archived and cannot be retried; create a new post", post.Name)
	case !post.Status.Finished && !view.AllSettled():
		return errorf(CodeConflict, "post %s is %s; only a failed post can be retried", post.Name, view.Phase())
	}
	var problems []string
	for i := range post.Spec.Targets {
		switch t := view.Target(i); {
		case attempt.Undecided(t):
			// The retry would wait for the answer.
			return errorf(CodeConflict, "post %s cannot be retried: target %d: %s", post.Name, i, s.failure(post, t))
		case view.Retriable(i):
			return nil
		default:
			problems = append(problems, fmt.Sprintf("target %d: %s", i, out(post, i)))
		}
	}
	return errorf(CodeConflict, "post %s cannot be retried: %s", post.Name, JoinProblems(problems))
}
