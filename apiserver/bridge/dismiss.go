// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Dismiss records in the social.herald.dev/dismissed annotation that a failed post no longer needs a user's attention.
// It is idempotent.
func (s *Service) Dismiss(ctx context.Context, caller Caller, id string) error {
	return s.annotate(ctx, caller, id, ActDismissed, func(post *v1alpha1.Post) (name, value string, err error) {
		switch {
		case slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool { return attempt.Undecided(&t) }):
			return "", "", errorf(CodeConflict, "post %s needs an answer first: it is unknown whether it was published", id)
		case posting.Of(post).Phase() != v1alpha1.PhaseFailed:
			return "", "", errorf(CodeConflict, "post %s has not failed; reload it", id)
		case !isHandled(post):
			value = s.Clock.Now().UTC().Format(time.RFC3339)
		}
		return v1alpha1.DismissedAnnotation, value, nil
	})
}

// isHandled reports whether a failed post no longer needs a user's attention: a user dismissed it, or other posts retry
// all of its failed targets.
func isHandled(post *v1alpha1.Post) bool {
	view := posting.Of(post)
	if view.Phase() != v1alpha1.PhaseFailed {
		return false
	}
	if post.Annotations[v1alpha1.DismissedAnnotation] != "" {
		return true
	}
	for i := range post.Spec.Targets {
		if t := view.Target(i); view.TargetPhase(i) == v1alpha1.PhaseFailed && (t == nil || t.RetriedBy == "") {
			return false
		}
	}
	return true
}
