// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"slices"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// Duplicate is a post's content, for a copy.
type Duplicate struct {
	// Spec has no time and is not a draft. It may break rules where content was omitted.
	Spec v1alpha1.PostSpec
	// Omitted describes, in human-readable form, the content that cannot be copied to the new post.
	Omitted []string
	// Already maps the connection of a target in Spec to the human-readable reason why the new post excludes it by
	// default: part of the post is, or may be, published there.
	Already map[string]string
}

// DuplicatePost returns a post's content for a copy, without deleted accounts and files.
func (s *Service) DuplicatePost(ctx context.Context, caller Caller, id string) (Duplicate, error) {
	post, err := s.read(ctx, caller, id)
	if err != nil {
		return Duplicate{}, err
	}
	d, err := s.duplicate(ctx, caller, post, func(int) bool { return true })
	d.Already = already(post)
	return d, err
}

// ResendPost returns a post's content for a new post to one of its targets, which failed without publishing anything.
// title is the post's title in lists.
func (s *Service) ResendPost(ctx context.Context, caller Caller, id string, target int) (d Duplicate, title string, err error) {
	post, err := s.read(ctx, caller, id)
	if err != nil {
		return Duplicate{}, "", err
	}
	switch {
	case target < 0 || target >= len(post.Spec.Targets):
		return Duplicate{}, "", errorf(CodeValidation, "post %s has no target %d", id, target)
	case !posting.Of(post).Retriable(target):
		return Duplicate{}, "", errorf(CodeConflict, "target %d of post %s cannot be sent again: %s; reload the post", target, id, out(post, target))
	}
	d, err = s.duplicate(ctx, caller, post, func(i int) bool { return i == target })
	if !isArchived(post) {
		d.Spec.RetryOf = &v1alpha1.LocalReference{Name: post.Name}
	}
	return d, s.Summarise(post).Title, err
}

// already returns Duplicate.Already. It is empty if no part of the post is published, or all of it: the copy is then a
// new post and does not complete the old one.
func already(post *v1alpha1.Post) map[string]string {
	view, posted, partly := posting.Of(post), 0, false
	for i := range post.Spec.Targets {
		t := view.Target(i)
		if t == nil {
			continue
		}
		switch posting.StateOf(t) {
		case v1alpha1.TargetPosted:
			posted++
		case v1alpha1.TargetUndecided:
			partly = true
		case v1alpha1.TargetPending, v1alpha1.TargetFailed, v1alpha1.TargetWithdrawn:
			partly = partly || len(t.Cards) > 0
		}
	}
	if !partly && (posted == 0 || posted == len(post.Spec.Targets)) {
		return nil
	}
	why := map[string]string{}
	for i := range post.Spec.Targets {
		if !view.Retriable(i) {
			why[post.Spec.Targets[i].ConnectionRef.Name] = out(post, i)
		}
	}
	return why
}

// out returns the human-readable reason not to send a target again.
func out(post *v1alpha1.Post, i int) string {
	t := posting.Of(post).Target(i)
	switch {
	case t == nil || posting.StateOf(t) == v1alpha1.TargetPending:
		return "still being published there"
	case posting.StateOf(t) == v1alpha1.TargetPosted:
		return "already posted there"
	case t.RetriedBy != "":
		return "post " + t.RetriedBy + " sends it there again"
	case len(t.Cards) > 0:
		return "a part of it is already posted there"
	default:
		return "it is not known whether it was posted there"
	}
}

func (s *Service) duplicate(ctx context.Context, caller Caller, post *v1alpha1.Post, wanted func(target int) bool) (Duplicate, error) {
	d := Duplicate{Spec: *post.Spec.DeepCopy()}
	d.Spec.ScheduledAt, d.Spec.Draft, d.Spec.Cancelled, d.Spec.RetryOf = nil, false, false, nil
	find := s.inMemory(caller.Namespace)
	d.Spec.Targets = d.Spec.Targets[:0]
	for i, t := range post.Spec.Targets {
		if !wanted(i) {
			continue
		}
		if connection := find(t.ConnectionRef.Name); connection == nil || connection.DeletionTimestamp != nil {
			d.Omitted = append(d.Omitted, fmt.Sprintf("account %q is no longer connected", t.ConnectionRef.Name))
			continue
		}
		d.Spec.Targets = append(d.Spec.Targets, *t.DeepCopy())
	}
	gone := map[string]bool{}
	for _, name := range posting.Of(&v1alpha1.Post{Spec: d.Spec}).MediaNames() {
		media, err := s.readMedia(ctx, caller, name)
		if err != nil {
			return Duplicate{}, fmt.Errorf("read a media file: %w", err)
		}
		if media == nil || media.DeletionTimestamp != nil || media.Status.Phase != v1alpha1.MediaUploaded {
			gone[name] = true
			d.Omitted = append(d.Omitted, omittedFile(name, media))
		}
	}
	dropMedia(&d.Spec, gone)
	return d, nil
}

// omittedFile returns the message about a deleted file. media is nil if its resource has also been deleted.
func omittedFile(name string, media *v1alpha1.Media) string {
	if media == nil {
		return fmt.Sprintf("file %q has been deleted; upload it again", name)
	}
	return fmt.Sprintf("file %q (%s) has been deleted; upload it again", media.Spec.FileName, name)
}

func dropMedia(spec *v1alpha1.PostSpec, gone map[string]bool) {
	isGone := func(ref v1alpha1.MediaReference) bool { return gone[ref.Name] }
	if spec.Image != nil {
		spec.Image.MediaRefs = slices.DeleteFunc(spec.Image.MediaRefs, isGone)
	}
	if spec.Video != nil && isGone(spec.Video.MediaRef) {
		spec.Video.MediaRef = v1alpha1.MediaReference{}
	}
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			card := &spec.Tree.Cards[i]
			card.MediaRefs = slices.DeleteFunc(card.MediaRefs, isGone)
		}
	}
}
