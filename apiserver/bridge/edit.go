// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
)

// EditPost is a request to change a post before its delivery starts.
type EditPost struct {
	// Version is the Version that the client read.
	Version string
	// Spec is the content after the change.
	Spec v1alpha1.PostSpec
	// Problems are described in CreatePost. Unread lists the parts of the request that could not be parsed, with paths,
	// and More is the number of others.
	Problems, Unread []string
	More             int
}

// EditPost changes a post, which the caller has read with ReadPost, and returns it. A draft remains one, or is published
// or scheduled; a scheduled post gets another time or content, or is published immediately. The rules, the budgets and
// the freeze are the same as in the web application. A repeated request returns the post unchanged.
func (s *Service) EditPost(ctx context.Context, caller Caller, stored *v1alpha1.Post, in *EditPost) (PostDetail, error) {
	if err := s.RequireSubscription(caller); err != nil {
		return PostDetail{}, err
	}
	if err := require(caller, ScopeDraft); err != nil {
		return PostDetail{}, err
	}
	if len(in.Unread) > 0 || len(in.Problems) > 0 {
		wanted := stored.DeepCopy()
		wanted.Spec = in.Spec
		j := &postValidation{post: wanted, planned: wanted, stored: stored, problems: in.Problems, unread: in.Unread, now: s.Clock.Now()}
		return PostDetail{}, s.refuse(ctx, j, in.More)
	}
	limits.MeterFrom(ctx).Parts(len(in.Spec.Targets))
	if publishes := !stored.Spec.Draft || !in.Spec.Draft; publishes && s.requiresReview(caller) {
		if err := require(caller, ScopePublish); err != nil {
			return PostDetail{}, err
		}
		return PostDetail{}, errorf(CodeInsufficientScope, "the team reviews what agents publish: an agent can change drafts, and a user publishes and reschedules posts in Herald")
	}
	changed, err := s.edit(ctx, caller, stored, in)
	if err != nil {
		return PostDetail{}, err
	}
	return s.detail(changed, s.inMemory(changed.Namespace)), nil
}

// edit makes the kind of change that leads to the wanted content.
func (s *Service) edit(ctx context.Context, caller Caller, stored *v1alpha1.Post, in *EditPost) (*v1alpha1.Post, error) {
	now, wanted := &stored.Spec, in.Spec
	moved := *now.DeepCopy()
	moved.ScheduledAt = wanted.ScheduledAt
	var at *time.Time
	if wanted.ScheduledAt != nil {
		at = &wanted.ScheduledAt.Time
	}
	switch {
	case wanted.Draft:
		return s.UpdateDraft(ctx, caller, stored.Name, in.Version, wanted)
	case now.Draft, wanted.ScheduledAt == nil:
		return s.Publish(ctx, caller, stored.Name, in.Version, wanted, at)
	case v1alpha1.SemanticEqual(moved, wanted):
		return s.Reschedule(ctx, caller, stored.Name, in.Version, *at)
	default:
		return s.EditScheduled(ctx, caller, stored.Name, in.Version, wanted)
	}
}
