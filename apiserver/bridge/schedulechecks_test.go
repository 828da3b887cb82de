// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// withPictures edits a schedule's content so that its posts have pictures.
func withPictures(names ...string) func(*v1alpha1.PostScheduleSpec) {
	return func(spec *v1alpha1.PostScheduleSpec) {
		spec.Template.Category, spec.Template.Image = v1alpha1.CategoryImage, &v1alpha1.ImageContent{}
		for _, name := range names {
			spec.Template.Image.MediaRefs = append(spec.Template.Image.MediaRefs, v1alpha1.MediaReference{Name: name})
		}
	}
}

// TestPostsOfSchedule verifies that each problem of a schedule's posts is reported once, and that its files are read once
// for all of its texts, and only if its other fields are valid.
func TestPostsOfSchedule(t *testing.T) {
	t.Parallel()
	long := func(n int) func(*v1alpha1.PostScheduleSpec) {
		return func(spec *v1alpha1.PostScheduleSpec) { spec.Texts[n] = strings.Repeat("a", 300) }
	}
	toBeta := func(spec *v1alpha1.PostScheduleSpec) {
		spec.Template.Targets = append(spec.Template.Targets, to("beta")...)
	}
	toSky := func(spec *v1alpha1.PostScheduleSpec) { spec.Template.Targets[0].ConnectionRef.Name = "sky" }
	for name, tc := range map[string]struct {
		reason  string
		spec    v1alpha1.PostScheduleSpec
		reading error
		want    []string
		code    string
		reads   int64
	}{
		"Text":       {"its posts have no files", mondays(), errLost, nil, "", 0},
		"Sky":        {"schedules are not part of version 1 of the API", mondays(toSky), nil, nil, "", 0},
		"Alike":      {"both accounts have the same limit", mondays(toBeta, long(1)), nil, []string{"texts[1]"}, "", 0},
		"Picture":    {"all of its posts have the same file", mondays(withPictures("m")), nil, nil, "", 1},
		"Missing":    {"the file was deleted", mondays(withPictures("m", "gone")), nil, []string{"media_ids[1]"}, "", 2},
		"FirstText":  {"the text has to be corrected first", mondays(withPictures("gone"), long(0)), errLost, []string{"texts[0]"}, "", 0},
		"SecondText": {"the first post is valid but for its file", mondays(withPictures("gone"), long(1)), nil, []string{"media_ids[0]", "texts[1]"}, "", 1},
		"Unreadable": {"the Kubernetes API does not respond", mondays(withPictures("m")), errLost, nil, "internal", 1},
	} {
		c := &countingFiles{files: &files{
			stored: map[string]*v1alpha1.Media{
				"m": {ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded}},
			},
			reading: tc.reading,
		}}
		s, _, _ := withSchedules()
		connected := inMemory("acme")
		connected.memory["beta"], connected.memory["sky"] = onX("beta"), account("sky", v1alpha1.PlatformBluesky, 0, nil)
		s.Connections, s.Media, s.Files = connected, c, c
		s.Capabilities = func(platform v1alpha1.Platform) (platforms.Capabilities, bool) {
			with, ok := limited(platform)
			with.Categories, with.MaxImages = append(with.Categories, v1alpha1.CategoryImage), 4
			return with, ok
		}
		_, refused, err := s.CheckSchedule(t.Context(), person, "tuesday", tc.spec)
		var paths []string
		if refused != nil {
			for _, p := range refused.Problems {
				paths = append(paths, p.Path)
			}
		}
		if diff := cmp.Diff(tc.want, paths); code(err) != tc.code || diff != "" || c.reads.Load() != tc.reads {
			t.Errorf("%s: %s: error %v, %d reads, want %q, %d; -want +got\n%s%v", name, tc.reason, err, c.reads.Load(), tc.code, tc.reads, diff, refused)
		}
	}
}
