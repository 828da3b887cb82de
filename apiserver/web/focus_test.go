// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestFocalPoint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, x, y string
		want         *v1alpha1.FocalPoint
	}{
		"none":       {"Mastodon chooses", "", "", nil},
		"both":       {"the top left corner", "-100", "100", &v1alpha1.FocalPoint{X: -100, Y: 100}},
		"one":        {"the other is the center", "", "40", &v1alpha1.FocalPoint{Y: 40}},
		"too far":    {"nothing is beyond an edge", "999999999999", "-101", &v1alpha1.FocalPoint{X: 100, Y: -100}},
		"no numbers": {"browsers do not send them", "left", " 5 ", &v1alpha1.FocalPoint{Y: 5}},
	} {
		if diff := cmp.Diff(tc.want, focalPoint(tc.x, tc.y)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestFocusFields checks where the form has fields for focal points: only Mastodon has them, but a post that has one
// keeps it.
func TestFocusFields(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		mastodon bool
		point    *v1alpha1.FocalPoint
		want     bool
	}{
		{"the team has an account on Mastodon", true, nil, true},
		{"a team without one has no use for the fields", false, nil, false},
		{"an account that has left does not change its posts", false, &v1alpha1.FocalPoint{X: 20}, true},
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		if !tc.mastodon {
			w.connections[acme] = slices.DeleteFunc(w.connections[acme], func(c *v1alpha1.Connection) bool { return c.Spec.Platform == v1alpha1.PlatformMastodon })
		}
		w.upload("m-1")
		w.put(textPost("p-1", "text", asDraft, func(post *v1alpha1.Post) {
			post.Spec.Category = v1alpha1.CategoryImage
			post.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "m-1", FocalPoint: tc.point}, {Name: "m-1"}}}
		}))
		page := w.get(t, editor, "/teams/"+acme+"/posts/p-1/edit")
		form := sent(withID(t, page, "compose"))
		if got := strings.Contains(textOf(page), "Focal point"); got != tc.want || form.Has("focus-x-image-m-1") != tc.want {
			t.Errorf("%s: the form has fields: %t, want %t", tc.name, got, tc.want)
		}
		if got := readWriting(form).perFile.references("image", form["image"]); !cmp.Equal(got, w.posts[acme+"/p-1"].Spec.Image.MediaRefs) {
			t.Errorf("%s: the form has the files %+v", tc.name, got)
		}
	}
}
