// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestUnfitFiles checks which accounts cannot take a post's files.
func TestUnfitFiles(t *testing.T) {
	refs := func(names ...string) (refs []v1alpha1.MediaReference) {
		for _, name := range names {
			refs = append(refs, v1alpha1.MediaReference{Name: name})
		}
		return refs
	}
	images := func(names ...string) v1alpha1.PostSpec {
		return v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: refs(names...)}}
	}
	video := func(name string) v1alpha1.PostSpec {
		return v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo, Video: &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: name}}}
	}
	thread := func(names ...string) v1alpha1.PostSpec {
		return v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: ""}, {MediaRefs: refs(names...)}}}}
	}
	draft := func(spec v1alpha1.PostSpec) v1alpha1.PostSpec {
		spec.Draft = true
		return spec
	}
	const (
		short = `the video "launch.mp4" plays for 5 min; tiktok accepts at most 3 min; upload one that fits, or post it to the other platforms only`
		long  = `the video "launch.mp4" plays for 5 min; facebook accepts at most 4 min; upload one that fits, or post it to the other platforms only`
		still = `instagram does not accept the image "wave.webp" as it is, and Herald cannot convert it: it is an animation; upload a still`
		few   = `facebook accepts at most 4 images; leave some out, or post to the other connections separately`
	)
	for name, tc := range map[string]struct {
		reason   string
		spec     v1alpha1.PostSpec
		to       string
		converts bool
		want     []string
	}{
		"fits":                {"the account has no limit", video("video"), "x", false, nil},
		"the account's limit": {"accounts of one platform differ", video("video"), "tiktok-short", false, []string{short}},
		"another account":     {"its limit is larger", video("video"), "tiktok", false, nil},
		"the platform's":      {"the problem is the same for all accounts", video("video"), "facebook", false, []string{long}},
		"converted":           {"the platform gets a shorter or smaller file only if conversion can make one", video("phone"), "facebook", true, nil},
		"doubtful":            {"a warning does not prevent a choice", video("phone"), "facebook", false, nil},
		"too many":            {"each picture alone is accepted", images("animation", "animation", "animation", "animation", "animation"), "facebook", false, []string{few}},
		"a format":            {"the platform accepts only stills", images("animation"), "instagram", false, []string{still}},
		"in a thread":         {"texts are not judged, and may be missing", thread("animation"), "instagram", false, []string{still}},
		"a draft's thread":    {"the draft is to be published some day", draft(thread("animation")), "instagram", false, []string{still}},
		"missing":             {"no account accepts it", images("gone"), "instagram", false, nil},
		"no files yet":        {"files may still be added", images(), "instagram", false, nil},
		"another kind":        {"the reason is the kind", v1alpha1.PostSpec{Category: v1alpha1.CategoryText}, "instagram", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			env := filesEnv()
			env.Converts = tc.converts
			post := &v1alpha1.Post{Spec: tc.spec}
			before := post.DeepCopy()
			var got []string
			found := UnfitFiles(post, env, []*v1alpha1.Connection{env.Connection("x"), env.Connection(tc.to)})
			for _, err := range found[1] {
				got = append(got, err.Detail)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, post); diff != "" {
				t.Errorf("the post was changed:\n%s", diff)
			}
		})
	}
}
