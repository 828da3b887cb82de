// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
)

// TestRefusePost verifies which problems are reported for a post that could not be parsed completely.
func TestRefusePost(t *testing.T) {
	t.Parallel()
	wordless := saying("", strings.Split(strings.Repeat("acme ", 10), " ")[:10]...)
	drafts := bridge.Caller{Namespace: caller.Namespace, Key: "k", Scopes: []bridge.Scope{bridge.ScopeDraft}}
	for name, tc := range map[string]struct {
		reason string
		caller bridge.Caller
		unread []string
		more   int
		want   string
		absent string
		cost   int
	}{
		"Caption":  {"a post needs a caption", caller, []string{"spacing: is unknown"}, 0, "spacing: is unknown; ", "", 1},
		"Draft":    {"the request may be a draft, which needs no caption", drafts, []string{"draft: must be true or false"}, 0, "draft: must be true or false", ".caption: ", 1},
		"TooMany":  {"the message has no room for more problems", caller, []string{"spacing: is unknown"}, 7, "spacing: is unknown; and 7 more", ".caption: ", 0},
		"NoAccess": {"the caller may not create posts", bridge.Caller{Namespace: caller.Namespace, Scopes: []bridge.Scope{"herald:read"}}, []string{"spacing: is unknown"}, 0, "", "spacing", 0},
	} {
		s := service(&posts{}, inMemory("acme"))
		ctx, meter := limits.WithMeter(t.Context())
		err := s.RefusePost(ctx, tc.caller, bridge.CreatePost{Spec: wordless}, tc.unread, tc.more)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || tc.absent != "" && strings.Contains(err.Error(), tc.absent) || meter.Requests() != tc.cost {
			t.Errorf("%s: %s: error %v, want %q without %q; costs %d, want %d", name, tc.reason, err, tc.want, tc.absent, meter.Requests(), tc.cost)
		}
	}
}

// TestRefuseUpload verifies that a part that could not be parsed has one problem, and that the other parts are checked.
func TestRefuseUpload(t *testing.T) {
	t.Parallel()
	spec := photo(func(s *v1alpha1.MediaSpec) { s.FileName, s.SizeBytes = "a.mp4", 0 })
	const name = "name: the name of an image ends in .jpg, .jpeg, .png or .webp; rename the file"
	for unread, want := range map[string]string{
		"size_bytes: must be a number": "size_bytes: must be a number; " + name + "; and 2 more",
		"name: must be a string":       "name: must be a string; size_bytes: an image has 1 to 20971520 bytes, not 0; upload a smaller file; and 2 more",
	} {
		if err := bridge.RefuseUpload(&spec, []string{unread}, 2); code(err) != "VALIDATION_ERROR" || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestOptionProblems verifies that one response contains the problems of a post and of its platform options.
func TestOptionProblems(t *testing.T) {
	t.Parallel()
	s, _ := checkService()
	_, err := s.CreatePost(t.Context(), caller, bridge.CreatePost{Spec: saying("Hello!", "x", "tok")})
	for _, want := range []string{"targets[0].caption: ", "targets[1].tiktok_privacy_level: "} {
		if code(err) != "VALIDATION_ERROR" || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

// TestVideo creates a post with a video that is verified.
func TestVideo(t *testing.T) {
	t.Parallel()
	s, f := checkService()
	f.stored["film"] = &v1alpha1.Media{
		Spec:   v1alpha1.MediaSpec{FileName: "a.mp4", MimeType: v1alpha1.MimeMP4, SizeBytes: 5},
		Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded},
	}
	spec := saying("a", "x")
	spec.Category, spec.Video = v1alpha1.CategoryVideo, &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}}
	if _, err := s.CreatePost(t.Context(), caller, bridge.CreatePost{Spec: spec}); err != nil {
		t.Error(err)
	}
}
