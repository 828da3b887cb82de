// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Verdict is what a person found out about a target whose outcome is unknown.
type Verdict struct {
	// Posted says that it was published, under ExternalID, the platform's own id of the
	// post. Otherwise it was not, and Herald sends it again.
	Posted     bool
	ExternalID string
}

// Settle enters what a person found out about a target whose outcome is unknown. The
// manager takes it over from the annotation social.herald.dev/settle. A verdict that was
// given already is taken once; another one is a CONFLICT.
func (s *Service) Settle(ctx context.Context, caller Caller, id string, target int, verdict Verdict) error {
	if target < 0 {
		return errorf(CodeValidation, "post %s has no target %d", id, target)
	}
	entry := fmt.Sprintf("%d=not-sent", target)
	if verdict.Posted {
		verdict.ExternalID = strings.TrimSpace(verdict.ExternalID)
		entry = fmt.Sprintf("%d=posted:%s", target, verdict.ExternalID)
	}
	given, err := attempt.ParseResolutions(entry)
	if err != nil || len(given) != 1 {
		return errorf(CodeValidation, "%q is not the id of a post; enter the platform's own id of it alone, without its address", verdict.ExternalID)
	}
	var last error
	for range changeTries {
		post, err := s.read(ctx, caller, id)
		if err != nil {
			return err
		}
		if target >= len(post.Spec.Targets) {
			return errorf(CodeValidation, "post %s has no target %d", id, target)
		}
		value, err := withVerdict(post, given[0], entry)
		if err == nil && value != "" && hasLeft(post) {
			return errorf(CodeConflict, "post %s has left for the archive, where nothing of it can be changed; if it is not on the account, make a new post", id)
		}
		switch {
		case err != nil:
			return err
		case value == "":
			if errors.Is(last, ErrMaybeChanged) { // most likely it was this very request
				s.Acted(ctx, caller, ActSettled, post)
			}
			return nil
		}
		settled := post.DeepCopy()
		metav1.SetMetaDataAnnotation(&settled.ObjectMeta, v1alpha1.SettleAnnotation, value)
		signed(&settled.ObjectMeta, caller)
		written, err := s.Posts.Update(ctx, post, settled)
		switch {
		case err == nil:
			s.Acted(ctx, caller, ActSettled, written)
			return nil
		case apierrors.IsConflict(err):
			last = errorf(CodeConflict, "post %s is being changed at the same time; try again", id)
		case answerLost(err) && ctx.Err() == nil:
			last = fmt.Errorf("%w: %w", ErrMaybeChanged, err)
		default:
			return fmt.Errorf("settle a target of a post: %w", err)
		}
	}
	return last
}

// withVerdict returns the annotation of a post with one more verdict; "" if the verdict is
// known already. Others, which the manager has not taken over yet, stay.
func withVerdict(post *v1alpha1.Post, verdict attempt.Resolution, entry string) (string, error) {
	waiting := post.Annotations[v1alpha1.SettleAnnotation]
	if others, err := attempt.ParseResolutions(waiting); err == nil {
		for _, other := range others {
			switch {
			case other == verdict:
				return "", nil
			case other.Index == verdict.Index:
				return "", errorf(CodeConflict, "another answer for target %d of post %s is being taken over; look at the post again in a moment", verdict.Index, post.Name)
			}
		}
		entry = waiting + "," + entry
	}
	t := posting.Target(post, int(verdict.Index))
	switch {
	case t != nil && posting.StateOf(t) == v1alpha1.TargetUndecided:
		return entry, nil
	case t != nil && isResolved(t, verdict):
		return "", nil
	default:
		return "", errorf(CodeConflict, "target %d of post %s is %s; only a target whose outcome is unknown can be settled by a person",
			verdict.Index, post.Name, posting.TargetPhaseOf(post, int(verdict.Index)))
	}
}

// isResolved reports whether a target stands as the verdict says.
func isResolved(t *v1alpha1.TargetStatus, verdict attempt.Resolution) bool {
	if verdict.ExternalID != "" {
		return t.ExternalID == verdict.ExternalID
	}
	return t.Attempt != nil && t.Attempt.Outcome == v1alpha1.OutcomeNotSent
}
