// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestNoConnection reads an applied post whose connection never existed, and which failed at its deadline.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		target v1alpha1.PostTarget
		want   v1alpha1.Platform
	}{
		"options of YouTube":      {"other platforms have none of these", v1alpha1.PostTarget{YouTube: &v1alpha1.YouTubeOptions{Title: "a film"}}, v1alpha1.PlatformYouTube},
		"options of TikTok":       {"as above, whatever the name says", v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, TikTok: &v1alpha1.TikTokOptions{}}, v1alpha1.PlatformTikTok},
		"a name with a platform":  {"people name connections so", v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "acme-threads.main"}}, v1alpha1.PlatformThreads},
		"a name with a like word": {"a part of a word is no platform", v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "instagrammers"}}, v1alpha1.PlatformX},
		"any other name":          {"X takes every category", v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "acme"}}, v1alpha1.PlatformX},
	} {
		const why = `connection "acme" does not exist`
		post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{tc.target}}}
		post.Name, post.Namespace = "p", caller.Namespace
		post.Status = v1alpha1.PostStatus{Phase: v1alpha1.PhaseFailed, Targets: []v1alpha1.TargetStatus{{
			Phase: v1alpha1.PhaseFailed, State: v1alpha1.TargetFailed, Reason: v1alpha1.ReasonMissedSchedule, Message: why,
		}}}
		s := service(&posts{stored: map[string]*v1alpha1.Post{"p": post}}, inMemory("other"))
		got, err := s.GetPost(t.Context(), caller, "p")
		if err != nil || len(got.Platforms) != 1 {
			t.Errorf("%s: %s: %d targets, error %v", name, tc.reason, len(got.Platforms), err)
			continue
		}
		if target := got.Platforms[0]; target.Platform != tc.want || target.ConnectionID != "" || target.ErrorMessage != why || target.Status != v1alpha1.PhaseFailed {
			t.Errorf("%s: %s: got %+v", name, tc.reason, target)
		}
		post.Status = v1alpha1.PostStatus{}
		if got, err := s.GetPost(t.Context(), caller, "p"); err != nil || len(got.Platforms) != 1 || got.Platforms[0].ErrorMessage != "" || got.Platforms[0].Status != v1alpha1.PhaseProcessing {
			t.Errorf("%s: while it waits, it reads %+v, error %v", name, got.Platforms, err)
		}
		if listed := s.Summarise(post).Platforms; len(listed) != 0 {
			t.Errorf("%s: a list says that it is on %v", name, listed)
		}
	}
}
