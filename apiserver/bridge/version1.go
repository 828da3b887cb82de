// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"slices"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/posting"
)

// inVersion1 returns the targets that version 1 of the API has. The index shares the slice, so it is not modified.
func inVersion1(targets []postindex.PlatformStatus) []postindex.PlatformStatus {
	later := func(t postindex.PlatformStatus) bool { return !t.Platform.InVersion1() }
	if !slices.ContainsFunc(targets, later) {
		return targets
	}
	return slices.DeleteFunc(slices.Clone(targets), later)
}

// shown returns a post, or an error if it does not exist for the caller.
func (s *Service) shown(caller Caller, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	if !caller.Version1 {
		return post, nil
	}
	find := s.inMemory(caller.Namespace)
	targets := make([]postindex.PlatformStatus, len(post.Spec.Targets))
	for i := range targets {
		targets[i].Platform = listedPlatform(post, i, find)
	}
	if lists.IsBeyondVersion1(targets) {
		return nil, noSuchPost(post.Name)
	}
	return post, nil
}

// listedPlatform is platformOf for lists of posts. A target whose connection has never existed is listed without a
// platform, unless version 1 of the API does not have the platform that GetPost presumes: the target is then listed
// with that platform.
func listedPlatform(post *v1alpha1.Post, i int, find func(string) *v1alpha1.Connection) v1alpha1.Platform {
	platform := platformOf(post, i, find)
	if presumed := posting.PresumedPlatform(&post.Spec.Targets[i]); platform == "" && !presumed.InVersion1() {
		return presumed
	}
	return platform
}
