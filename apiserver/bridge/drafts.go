// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// Autosave is the content of a form that a user is still writing.
type Autosave struct {
	// Key is the form's idempotency key. All saves of a form, and the post that it finally creates, share one post.
	Key string
	// Version is the Version that the previous save returned; empty before the first response.
	Version string
	Spec    v1alpha1.PostSpec
}

// composed is the fingerprint of every draft that Autosave creates, because a draft's content changes while its key
// remains the same.
const composed = "composed"

// Autosave stores the content of a form as a draft, and returns the draft. A form has one draft, even if its requests
// are repeated or concurrent. If the draft has changed since the version, Autosave returns an Error that is Outdated
// and does not store the content.
func (s *Service) Autosave(ctx context.Context, caller Caller, in Autosave) (*v1alpha1.Post, error) {
	in.Spec.Draft = true
	var id string
	if in.Version != "" {
		post, err := s.ComposedPost(ctx, caller, in.Key)
		if err != nil {
			return nil, err
		}
		if post == nil {
			return nil, errorf(CodeNotFound, "this form's draft was deleted; to keep the text, copy it to a new post")
		}
		id = post.Name
	} else {
		made, err := s.CreatePost(ctx, caller, CreatePost{Spec: in.Spec, IdempotencyKey: in.Key, Composed: true})
		if err != nil {
			return nil, err
		}
		id = made.ID
		post, err := s.read(ctx, caller, id)
		if err != nil || !made.Replayed {
			return post, err
		}
		in.Version = InitialVersion(post)
	}
	return s.AutosaveDraft(ctx, caller, id, in.Version, in.Spec)
}

// AutosaveDraft is UpdateDraft for an automatic save while a user is writing. Only the first of a user's successive
// saves is recorded as an action.
func (s *Service) AutosaveDraft(ctx context.Context, caller Caller, id, version string, spec v1alpha1.PostSpec) (*v1alpha1.Post, error) {
	return s.updateDraft(ctx, &change{caller: caller, id: id, seen: isVersion(version), unrecorded: true}, spec)
}

// ComposedPost returns the post that Autosave created under a form's key, or nil if there is none.
func (s *Service) ComposedPost(ctx context.Context, caller Caller, key string) (*v1alpha1.Post, error) {
	if key == "" {
		return nil, nil //nolint:nilnil // a form without a key has no draft
	}
	wanted := metav1.ObjectMeta{Namespace: caller.Namespace}
	if err := identify(&wanted, &caller, postPrefix, key, composed); err != nil {
		return nil, err
	}
	post, err := s.Posts.Get(ctx, caller.Namespace, wanted.Name)
	switch {
	case apierrors.IsNotFound(err), err == nil && !sameRequest(post, &wanted):
		return nil, nil //nolint:nilnil // absence is an answer here
	case err != nil:
		return nil, fmt.Errorf("read the draft of a form: %w", err)
	}
	return post, nil
}

// GoesOut reports whether a post has this content and is scheduled for at or earlier, because an identical request has
// already scheduled it.
func (s *Service) GoesOut(ctx context.Context, caller Caller, id string, spec *v1alpha1.PostSpec, at time.Time) bool {
	post, err := s.read(ctx, caller, id)
	if err != nil || posting.Of(post).Cancelled() || post.Spec.ScheduledAt == nil || post.Spec.ScheduledAt.After(at) {
		return false
	}
	wanted := *spec
	wanted.Draft, wanted.ScheduledAt, wanted.RetryOf = false, post.Spec.ScheduledAt, post.Spec.RetryOf
	wanted.OnUnknownOutcome = cmp.Or(wanted.OnUnknownOutcome, post.Spec.OnUnknownOutcome)
	return v1alpha1.SemanticEqual(post.Spec, wanted)
}

// InitialVersion returns the Version of a post that has not been changed since it was created, and "" for others. A
// form whose first save was stored, but whose response was lost, may continue from this version.
func InitialVersion(post *v1alpha1.Post) string {
	if post.Generation != 1 {
		return ""
	}
	return Version(post)
}

// lastAuthor returns the user who last changed a post or, failing that, created it.
func lastAuthor(post *v1alpha1.Post) string {
	return cmp.Or(post.Annotations[v1alpha1.LastAuthorAnnotation], post.Annotations[v1alpha1.AuthorAnnotation])
}
