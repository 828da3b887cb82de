// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

func require(caller Caller, scope Scope) error {
	if caller.May(scope) {
		return nil
	}
	return errorf(CodeInsufficientScope, "this requires the scope %q; ask the user on whose behalf you act to allow it, and sign in again", scope)
}

// requiresReview reports whether the caller's posts become drafts for a user's review.
func (s *Service) requiresReview(caller Caller) bool {
	if !caller.May(ScopePublish) {
		return true
	}
	team := s.Owner(caller.Namespace)
	return caller.Agent != "" && team != nil && team.Spec.Agents.Publishing == v1alpha1.AgentsDraft
}

// convertToDraft turns a post into a draft and returns the original post. An annotation on the draft records the
// requested time. If the post already is a draft, convertToDraft returns nil and does not change it.
func convertToDraft(post *v1alpha1.Post) (wanted *v1alpha1.Post) {
	if post.Spec.Draft {
		return nil
	}
	wanted = post.DeepCopy()
	at := v1alpha1.WantedNow
	if post.Spec.ScheduledAt != nil {
		at = post.Spec.ScheduledAt.String()
	}
	metav1.SetMetaDataAnnotation(&post.ObjectMeta, v1alpha1.WantedAtAnnotation, at)
	post.Spec.Draft, post.Spec.ScheduledAt = true, nil
	return wanted
}
