// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// require refuses a caller whose scopes do not reach so far.
func require(caller Caller, scope Scope) error {
	if caller.May(scope) {
		return nil
	}
	return errorf(CodeInsufficientScope, "this needs the scope %q; ask the person for whom you act to allow it, and sign in again", scope)
}

// requiresReview reports whether a post of the caller waits for a person as a draft, although
// it was to be published: because the caller may only make drafts, or because the team
// wants to see what agents write.
func (s *Service) requiresReview(caller Caller) bool {
	if !caller.May(ScopePublish) {
		return true
	}
	team := s.Owner(caller.Namespace)
	return caller.Agent != "" && team != nil && team.Spec.Agents.Publishing == v1alpha1.AgentsDraft
}

// convertToDraft makes a draft of a post that was to be published, and returns it as it was. The
// time that was wanted stands on the draft. A post that is a draft already stays as it is.
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
