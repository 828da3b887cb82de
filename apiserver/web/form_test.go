// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestAudienceChosen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		draft  bool
		tiktok *v1alpha1.TikTokOptions
		want   error
	}{
		"NotTikTok":   {"only TikTok has audiences", false, nil, nil},
		"No audience": {"TikTok requires an explicit choice", false, &v1alpha1.TikTokOptions{}, errNoAudience},
		"Everyone":    {"the user has chosen", false, &v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokPublicToEveryone}, nil},
		"Draft":       {"a draft is published later", true, &v1alpha1.TikTokOptions{}, nil},
		"Inbox":       {"the audience is chosen in TikTok's app", false, &v1alpha1.TikTokOptions{Draft: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := &v1alpha1.PostSpec{Draft: tc.draft, Targets: []v1alpha1.PostTarget{{TikTok: tc.tiktok}}}
			if err := audienceChosen(spec); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}

// TestFinished verifies that a page follows a post while it may change.
func TestFinished(t *testing.T) {
	t.Parallel()
	of := func(state v1alpha1.TargetState) *v1alpha1.Post {
		return &v1alpha1.Post{
			Spec:   v1alpha1.PostSpec{Targets: make([]v1alpha1.PostTarget, 1)},
			Status: v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{{State: state}}},
		}
	}
	for state, want := range map[v1alpha1.TargetState]bool{
		v1alpha1.TargetPosted: true, v1alpha1.TargetFailed: true,
		v1alpha1.TargetUndecided: false, // a person may resolve it
		v1alpha1.TargetPending:   false,
	} {
		if got := finished(of(state)); got != want {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
}

// TestEnterSends verifies that Enter in a field of the composer submits the form: it activates the form's first button
// (HTML, "Implicit submission"), which must not be a button with another action.
func TestEnterSends(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	page := w.get(t, administrator, "/teams/"+acme+"/posts/new")
	form := withID(t, page, "compose")
	for node := range form.Descendants() {
		if node.Data != "button" {
			continue
		}
		for _, attribute := range node.Attr {
			if attribute.Key == "name" || attribute.Key == "type" && attribute.Val != "submit" {
				t.Errorf("the first button has %s=%q", attribute.Key, attribute.Val)
			}
		}
		return
	}
	t.Error("the button is missing")
}
