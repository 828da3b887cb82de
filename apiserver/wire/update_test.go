// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/strictjson"
)

func TestUpdatePost(t *testing.T) {
	t.Parallel()
	at := v1alpha1.NewTimePtr(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	offset := int32(1500)
	video := v1alpha1.PostSpec{
		Category: v1alpha1.CategoryVideo, Draft: true,
		Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "a"}, Caption: "b"}},
		Video:   &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "m", AltText: "A cat"}, ThumbnailOffsetMillis: &offset},
	}
	scheduled := *video.DeepCopy()
	scheduled.Draft, scheduled.ScheduledAt = false, at
	for name, tc := range map[string]struct {
		reason string
		stored v1alpha1.PostSpec
		body   string
		edit   func(*v1alpha1.PostSpec)
		wrong  string
	}{
		"Nothing":    {"omitted fields do not change", video, `{}`, func(*v1alpha1.PostSpec) {}, ""},
		"SameWords":  {"a client may send unchanged values", video, `{"category":"video","draft":true}`, func(*v1alpha1.PostSpec) {}, ""},
		"NullTime":   {"null removes the time", scheduled, `{"scheduled_at":null}`, func(s *v1alpha1.PostSpec) { s.ScheduledAt = nil }, ""},
		"NullMoment": {"null leaves the thumbnail to the platforms", video, `{"thumbnail_time":null}`, func(s *v1alpha1.PostSpec) { s.Video.ThumbnailOffsetMillis = nil }, ""},
		"File":       {"a file is replaced, and its thumbnail time stays", video, `{"media_id":"n"}`, func(s *v1alpha1.PostSpec) { s.Video.MediaRef = v1alpha1.MediaReference{Name: "n"} }, ""},
		"SameFile":   {"the file keeps its alt text unless the body has another", video, `{"media_id":"m"}`, func(*v1alpha1.PostSpec) {}, ""},
		"AltText":    {"another text for the same file", video, `{"alt_text":"A dog"}`, func(s *v1alpha1.PostSpec) { s.Video.MediaRef.AltText = "A dog" }, ""},
		"NoAltText":  {"null leaves it to the Media", video, `{"media_id":"m","alt_text":null}`, func(s *v1alpha1.PostSpec) { s.Video.MediaRef.AltText = "" }, ""},
		"Foreign":    {"other categories' fields have no effect", video, `{"media_ids":7,"tree_cards":7}`, func(*v1alpha1.PostSpec) {}, ""},
		"Targets": {"a list is replaced entirely", video, `{"targets":[{"connection_id":"c"}]}`, func(s *v1alpha1.PostSpec) {
			s.Targets = []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "c"}}}
		}, ""},
		"Category":    {"each category has its own rules", video, `{"category":"text"}`, nil, "category: cannot be changed"},
		"BackToDraft": {"the CRD rejects it too", scheduled, `{"draft":true}`, nil, "draft: a post that is not a draft"},
		"NullTargets": {"null is not an empty list", video, `{"targets":null}`, nil, "targets: must be"},
		"NullDraft":   {"null is not a boolean", video, `{"draft":null}`, nil, "draft: must be"},
		"NullFile":    {"a video needs a file", video, `{"media_id":null}`, nil, "media_id: must be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := strictjson.Parse([]byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			before := tc.stored.DeepCopy()
			got := UpdatePost(body, &tc.stored)
			problems, _ := body.Problems()
			if said := strings.Join(problems, "; "); !strings.Contains(said, tc.wrong) || (said == "") != (tc.wrong == "") {
				t.Errorf("%s: %q, want %q", tc.reason, said, tc.wrong)
			}
			if diff := cmp.Diff(before, &tc.stored); diff != "" {
				t.Errorf("the stored post was modified: %s", diff)
			}
			if tc.edit == nil {
				return
			}
			tc.edit(before)
			if !v1alpha1.SemanticEqual(*before, got.Spec) {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got.Spec, *before)
			}
		})
	}
}
