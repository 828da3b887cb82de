// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/test/sandboxtest"
)

// testAltText publishes files with and without alt texts.
func (s *Suite) testAltText(t *testing.T) {
	longest := strings.Repeat("é", v1alpha1.MaxAltText)
	all := posts()
	for name, tc := range map[string]struct {
		reason, post string
		altTexts     []string
	}{
		"an image":       {"every character arrives unchanged", "an image", []string{"a \"cat\" & <dog>,\n50 % 😀"}},
		"the longest":    {"the limit is in characters, not bytes", "an image", []string{longest}},
		"some of images": {"each image has its own, and one may have none", "images", []string{"first", "", "third"}},
		"a video":        {"some platforms accept alt texts of videos, too", "a video", []string{"a cat"}},
		"none":           {"X refuses an empty alt text, so none is sent", "an image", []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			f, p := s.publisher(t)
			post := all[tc.post]
			if !slices.Contains(p.Capabilities().Delivers, post.category) {
				t.Skipf("%s does not support category %s", s.Name, post.category)
			}
			job, want := f.media(t, post.category, post.files(t)...), make([]string, len(tc.altTexts))
			for i, text := range tc.altTexts {
				job.Content.Media[i].AltText = text
				if slices.Contains(s.AltTexts, post.category) {
					want[i] = text
				}
			}
			job = f.prepare(t, job)
			if result := Publish(t, p, &job, waitALittle); result.Outcome != platforms.Posted {
				t.Fatalf("%s: got %+v", tc.reason, result)
			}
			if diff := cmp.Diff([][]string{want}, f.altTexts(t)); diff != "" {
				t.Errorf("%s: alt texts (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	t.Run("too long", func(t *testing.T) {
		if s.MaxAltText < 0 {
			t.Skipf("%s has no limit", s.Name)
		}
		for _, category := range s.AltTexts {
			f, _, preparer := s.preparer(t)
			job := f.post(t, category, "look at this")
			job.Content.Media[0].AltText = strings.Repeat("é", max(s.MaxAltText, v1alpha1.MaxAltText)+1)
			checkpoint, err := preparer.Prepare(t.Context(), job)
			if recorder.ClassOf(err) != platforms.ClassPermanent || len(f.published(t)) > 0 {
				t.Errorf("%s: got %q, %v; a rejected alt text is not sent again unchanged", category, checkpoint, err)
			}
		}
	})
	t.Run("faults", s.testAltTextFaults)
}

// testAltTextFaults makes a platform's separate call for alt texts fail once, and retries as the caller would. The post
// must be published once, with its alt text.
func (s *Suite) testAltTextFaults(t *testing.T) {
	if s.AltTextCall == "" {
		t.Skipf("%s has no separate call for alt texts", s.Name)
	}
	for name, tc := range map[string]struct {
		reason string
		fault  sandboxtest.Fault
		class  platforms.Class
	}{
		"trouble":       {"an outage passes", sandboxtest.Fault{Kind: "status", Status: 503}, platforms.ClassTransient},
		"lost before":   {"a lost request is sent again", sandboxtest.Fault{Kind: "drop_before"}, platforms.ClassTransient},
		"lost after":    {"an alt text can be set twice", sandboxtest.Fault{Kind: "drop_after"}, platforms.ClassTransient},
		"rate limited":  {"a limit passes", sandboxtest.Fault{Kind: "rate_limit", RetryAfterS: 60}, platforms.ClassRateLimited},
		"token expired": {"an ended token needs another one", sandboxtest.Fault{Kind: "token_expired"}, s.endedClass()},
		"refused":       {"a post does not lose its alt text silently", sandboxtest.Fault{Kind: "status", Status: 400}, platforms.ClassPermanent},
	} {
		for _, category := range s.AltTexts {
			t.Run(name+"/"+string(category), func(t *testing.T) {
				f, p, preparer := s.preparer(t)
				job := f.post(t, category, "look at this")
				job.Content.Media[0].AltText = "a cat"
				tc.fault.Operation = s.AltTextCall
				f.fault(t, tc.fault)
				checkpoint, err := preparer.Prepare(t.Context(), job)
				if recorder.ClassOf(err) != tc.class || checkpoint != "" {
					t.Errorf("%s: got %q, %v; want class %s", tc.reason, checkpoint, err, tc.class)
				}
				f.checkNoSecrets(t, asError(err))
				f.clearFaults(t)
				job = f.prepare(t, f.resumed(job))
				if got := Publish(t, p, &job, waitALittle); got.Outcome != platforms.Posted {
					t.Errorf("got %+v", got)
				}
				if diff := cmp.Diff([][]string{{"a cat"}}, f.altTexts(t)); diff != "" {
					t.Errorf("%s: alt texts (-want +got):\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// altTexts returns the alt texts of the published posts' files.
func (f *fixture) altTexts(t *testing.T) (all [][]string) {
	t.Helper()
	for _, post := range f.published(t) {
		texts := make([]string, len(post.Media))
		for i := range post.Media {
			texts[i] = post.Media[i].AltText
		}
		all = append(all, texts)
	}
	return all
}
