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

// Duplicate is the content of a post, for a new one.
type Duplicate struct {
	// Spec has neither a time nor is it a draft. It may break rules where something was
	// left out.
	Spec v1alpha1.PostSpec
	// LeftOut says, for people, what the new post cannot have any more.
	LeftOut []string
}

// DuplicatePost returns the content of a post for a new one: without the accounts and the
// files that are gone.
func (s *Service) DuplicatePost(ctx context.Context, caller Caller, id string) (Duplicate, error) {
	post, err := s.read(ctx, caller, id)
	if err != nil {
		return Duplicate{}, err
	}
	d := Duplicate{Spec: *post.Spec.DeepCopy()}
	d.Spec.ScheduledAt, d.Spec.Draft, d.Spec.Cancelled = nil, false, false
	find := s.inMemory(caller.Namespace)
	d.Spec.Targets = slices.DeleteFunc(d.Spec.Targets, func(t v1alpha1.PostTarget) bool {
		connection := find(t.ConnectionRef.Name)
		gone := connection == nil || connection.DeletionTimestamp != nil
		if gone {
			d.LeftOut = append(d.LeftOut, fmt.Sprintf("account %q is not connected any more", t.ConnectionRef.Name))
		}
		return gone
	})
	gone := map[string]bool{}
	for _, name := range posting.MediaNames(&d.Spec) {
		media, err := s.readMedia(ctx, caller, name)
		if err != nil {
			return Duplicate{}, fmt.Errorf("read a media file: %w", err)
		}
		if media == nil || media.DeletionTimestamp != nil || media.Status.Phase != v1alpha1.MediaUploaded {
			gone[name] = true
			d.LeftOut = append(d.LeftOut, leftOut(name, media))
		}
	}
	dropMedia(&d.Spec, gone)
	return d, nil
}

// leftOut says for people that a file is gone; media is nil if its record is, too.
func leftOut(name string, media *v1alpha1.Media) string {
	if media == nil {
		return fmt.Sprintf("file %q is not kept any more; upload it again", name)
	}
	return fmt.Sprintf("file %q (%s) is not kept any more; upload it again", media.Spec.FileName, name)
}

// dropMedia takes files out of what a post shows.
func dropMedia(spec *v1alpha1.PostSpec, gone map[string]bool) {
	isGone := func(ref v1alpha1.LocalReference) bool { return gone[ref.Name] }
	if spec.Image != nil {
		spec.Image.MediaRefs = slices.DeleteFunc(spec.Image.MediaRefs, isGone)
	}
	if spec.Video != nil && isGone(spec.Video.MediaRef) {
		spec.Video.MediaRef.Name = ""
	}
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			card := &spec.Tree.Cards[i]
			card.MediaRefs = slices.DeleteFunc(card.MediaRefs, isGone)
		}
	}
}
