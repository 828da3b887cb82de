// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"slices"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/readiness"
)

// Validation lists the reasons why a request would not create a post. Without findings, the request would create one.
type Validation struct {
	Findings []Finding
	// More is the number of problems that are not listed.
	More int
}

// Finding is a reason why a post would be rejected.
type Finding struct {
	// Code is the code that the request to create the post would be rejected with, if this were the only finding.
	Code Code
	// Path is the field's path in REST; empty if the finding does not concern a field.
	Path    string
	Message string
}

// ValidatePost runs every check of CreatePost without writing anything, and continues after the first problem. See
// RefusePost for unread and more. Accounts are judged by their last check, because requesting a new one requires a write.
func (s *Service) ValidatePost(ctx context.Context, caller Caller, in CreatePost, unread []string, more int) (Validation, error) {
	if err := s.RequireSubscription(caller); err != nil {
		return Validation{}, err
	}
	if err := require(caller, ScopeDraft); err != nil {
		return Validation{}, err
	}
	var found []*Error
	if len(unread) > 0 {
		if refused, ok := errors.AsType[*Error](s.refuse(ctx, s.unreadPost(caller, &in, unread), more)); ok {
			found = append(found, refused)
		}
		return validationOf(found), nil
	}
	limits.MeterFrom(ctx).Parts(len(in.Spec.Targets))
	now := s.Clock.Now()
	post, err := newPost(caller, &in, s.shardOf(caller), now)
	if err != nil {
		return Validation{}, err
	}
	j := &postValidation{post: post, planned: post, problems: in.Problems, now: now, found: &found}
	if s.requiresReview(caller) {
		j.requested = convertToDraft(post)
	}
	if err := j.collect(s.requireRoom(post)); err != nil {
		return Validation{}, err
	}
	_, _, err = s.validate(ctx, j, func(named map[string]*v1alpha1.Connection) error {
		if !post.Spec.Draft {
			found = append(found, notReady(ctx, named, lastCheck)...)
		}
		return nil
	})
	if err != nil {
		return Validation{}, err
	}
	return validationOf(found), nil
}

// lastCheck returns the result of a connection's last check. A connection that was never checked counts as ready.
func lastCheck(_ context.Context, connection *v1alpha1.Connection) readiness.Result {
	switch {
	case connection.Spec.Disabled:
		return readiness.Result{State: readiness.Reconnect, Message: "it is disabled"}
	case connection.Status.LastProbedAt == nil:
		return readiness.Result{State: readiness.Ready}
	default:
		return readiness.Last(connection)
	}
}

// validationOf returns the findings of errors, each once.
func validationOf(found []*Error) Validation {
	var out Validation
	add := func(f Finding) {
		known := slices.ContainsFunc(out.Findings, func(other Finding) bool { return other.Path == f.Path && other.Message == f.Message })
		if !known {
			out.Findings = append(out.Findings, f)
		}
	}
	for _, err := range found {
		problems := err.Problems
		switch {
		case len(problems) == 0 && err.Code == CodeValidation:
			problems = problemsIn([]string{err.Message})
		case len(problems) == 0:
			add(Finding{Code: err.Code, Message: err.Message})
		}
		for i := range problems {
			add(Finding{Code: err.Code, Path: problems[i].Path, Message: problems[i].Message})
		}
		out.More += err.More
	}
	return out
}
