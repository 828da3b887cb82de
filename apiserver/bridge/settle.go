// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Verdict is a user's answer about an undecided target.
type Verdict struct {
	// Posted is true if the target was published. Otherwise Herald sends it again.
	Posted bool
	// ExternalID is the platform's id for the published post. ExternalURL is its URL, and the manager derives the id
	// from it. Unnamed is set if the user has neither. A verdict with Posted has exactly one of the three.
	ExternalID  string
	ExternalURL string
	Unnamed     bool
}

// entry returns the annotation's entry for the verdict on a target, and the parsed entry.
func (v *Verdict) entry(target int) (string, attempt.Resolution, error) {
	entry := fmt.Sprintf("%d=not-sent", target)
	found := strings.TrimSpace(v.ExternalID)
	switch {
	case v.Posted && v.Unnamed:
		entry = fmt.Sprintf("%d=posted", target)
	case v.Posted && v.ExternalURL != "":
		// A comma separates entries.
		found = strings.ReplaceAll(strings.TrimSpace(v.ExternalURL), ",", "%2C")
		entry = fmt.Sprintf("%d=posted:%s", target, found)
	case v.Posted:
		entry = fmt.Sprintf("%d=posted:%s", target, found)
	}
	given, err := attempt.ParseResolutions(entry)
	if err != nil || v.ExternalID != "" && given[0].ExternalID != found {
		return "", attempt.Resolution{}, errorf(CodeValidation, "%q does not identify a post; enter the post's address as shown in the browser, or its id on the platform", found)
	}
	return entry, given[0], nil
}

// Settle records a user's verdict on an undecided target in the social.herald.dev/settle annotation, which the manager
// applies. Repeating the same verdict has no effect; for a different one, Settle returns a CONFLICT.
func (s *Service) Settle(ctx context.Context, caller Caller, id string, target int, verdict Verdict) error {
	if target < 0 {
		return errorf(CodeValidation, "post %s has no target %d", id, target)
	}
	entry, given, err := verdict.entry(target)
	if err != nil {
		return err
	}
	return s.annotate(ctx, caller, id, ActSettled, func(post *v1alpha1.Post) (name, value string, err error) {
		if target >= len(post.Spec.Targets) {
			return "", "", errorf(CodeValidation, "post %s has no target %d", id, target)
		}
		value, err = withVerdict(post, given, entry)
		return v1alpha1.SettleAnnotation, value, err
	})
}

// ListCandidates requests a new list of candidates from the manager, which it writes to the post's status.
func (s *Service) ListCandidates(ctx context.Context, caller Caller, id string) error {
	return s.annotate(ctx, caller, id, "", func(post *v1alpha1.Post) (name, value string, err error) {
		switch {
		case !slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool { return attempt.Undecided(&t) }):
			return "", "", errorf(CodeConflict, "the outcome of post %s is already known; reload it", id)
		case post.Annotations[v1alpha1.ListCandidatesAnnotation] == "":
			value = s.Clock.Now().UTC().Format(time.RFC3339)
		}
		return v1alpha1.ListCandidatesAnnotation, value, nil
	})
}

// annotate sets the annotation that change returns, unless it is empty. A non-empty act is recorded.
func (s *Service) annotate(ctx context.Context, caller Caller, id string, act Act, change func(*v1alpha1.Post) (name, value string, err error)) error {
	var last error
	for range changeTries {
		post, err := s.read(ctx, caller, id)
		if err != nil {
			return err
		}
		name, value, err := change(post)
		if err == nil && value != "" && isArchived(post) {
			return errorf(CodeConflict, "post %s is archived and can no longer be changed; if it is not on the account, create a new post", id)
		}
		switch {
		case err != nil:
			return err
		case value == "":
			if errors.Is(last, ErrMaybeChanged) && act != "" { // most likely by this very request
				s.Acted(ctx, caller, act, post)
			}
			return nil
		}
		settled := post.DeepCopy()
		metav1.SetMetaDataAnnotation(&settled.ObjectMeta, name, value)
		if act != "" {
			signed(&settled.ObjectMeta, caller)
		}
		written, err := s.Posts.Update(ctx, post, settled)
		switch {
		case err == nil:
			s.wrote(ctx, written, s.inMemory(written.Namespace))
			if act != "" {
				s.Acted(ctx, caller, act, written)
			}
			return nil
		case apierrors.IsConflict(err):
			last = errorf(CodeConflict, "post %s is being changed at the same time; try again", id)
		case answerLost(err) && ctx.Err() == nil:
			last = fmt.Errorf("%w: %w", ErrMaybeChanged, err)
		default:
			return fmt.Errorf("annotate a post: %w", err)
		}
	}
	return last
}

// withVerdict returns the annotation's value with the verdict added, or "" if it is already there.
func withVerdict(post *v1alpha1.Post, verdict attempt.Resolution, entry string) (string, error) {
	waiting := post.Annotations[v1alpha1.SettleAnnotation]
	if others, err := attempt.ParseResolutions(waiting); err == nil {
		for _, other := range others {
			switch {
			case other == verdict:
				return "", nil
			case other.Index == verdict.Index:
				return "", errorf(CodeConflict, "another answer for target %d of post %s is being applied; reload the post in a moment", verdict.Index, post.Name)
			}
		}
		entry = waiting + "," + entry
	}
	t := posting.Of(post).Target(int(verdict.Index))
	switch {
	case t != nil && posting.StateOf(t) == v1alpha1.TargetUndecided:
		return entry, nil
	case t != nil && isResolved(t, verdict):
		return "", nil
	default:
		return "", errorf(CodeConflict, "target %d of post %s is %s; only a target whose outcome is unknown can be settled by a user",
			verdict.Index, post.Name, posting.Of(post).TargetPhase(int(verdict.Index)))
	}
}

// isResolved reports whether a target has the outcome of the verdict.
func isResolved(t *v1alpha1.TargetStatus, verdict attempt.Resolution) bool {
	switch {
	case verdict.ExternalID != "":
		return t.ExternalID == verdict.ExternalID
	case verdict.Published():
		return attempt.Posted(t)
	}
	return t.Attempt != nil && t.Attempt.Outcome == v1alpha1.OutcomeNotSent
}
