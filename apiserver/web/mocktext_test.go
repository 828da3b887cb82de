// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/realplatforms"
)

// TestMockText verifies which part of a text is folded, and that addresses are shortened and marked.
func TestMockText(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("word ", 40)
	tests := []struct {
		name     string
		platform v1alpha1.Platform
		text     string
		// lead is the visible text, and rest the text behind "… more"; empty if nothing is folded.
		lead, rest string
	}{
		{"X shows a text in full", v1alpha1.PlatformX, word, word, ""},
		{"a text of exactly the limit is shown in full", v1alpha1.PlatformInstagram, strings.Repeat("a", 125), strings.Repeat("a", 125), ""},
		{"trailing spaces do not count as hidden text", v1alpha1.PlatformInstagram, strings.Repeat("a", 125) + "\n\n", strings.Repeat("a", 125) + "\n\n", ""},
		{"Instagram folds after the last whole word", v1alpha1.PlatformInstagram, word, word[:125], word[125:]},
		{"the last word is not split", v1alpha1.PlatformInstagram, strings.Repeat("a", 100) + " " + strings.Repeat("b", 50), strings.Repeat("a", 100) + " ", strings.Repeat("b", 50)},
		{"a text without blanks is divided", v1alpha1.PlatformInstagram, strings.Repeat("あ", 130), strings.Repeat("あ", 125), strings.Repeat("あ", 5)},
		{"an emoji family counts as one and is not divided", v1alpha1.PlatformInstagram, strings.Repeat("👨‍👩‍👧‍👦", 126), strings.Repeat("👨‍👩‍👧‍👦", 125), "👨‍👩‍👧‍👦"},
		{"lines count as well", v1alpha1.PlatformInstagram, "one\ntwo\nthree", "one\ntwo", "\nthree"},
		{"Facebook shows five lines", v1alpha1.PlatformFacebook, "1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5", "\n6"},
		{"a tag is not divided", v1alpha1.PlatformInstagram, strings.Repeat("あ", 120) + "、#" + strings.Repeat("い", 20), strings.Repeat("あ", 120) + "、", "#" + strings.Repeat("い", 20)},
		{"a leading hashtag is shown in full", v1alpha1.PlatformInstagram, "#" + strings.Repeat("い", 130) + " end", "#" + strings.Repeat("い", 130), " end"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			limits, _ := realplatforms.All().Capabilities(tc.platform)
			var out strings.Builder
			_ = mockText(tc.text, limits.Display).Render(&out)
			page := parsed(t, out.String())
			lead, rest := textOf(page), ""
			if folds := elements(page, "summary"); len(folds) > 0 {
				first, _, _ := strings.Cut(lead, "… more")
				rest = strings.TrimPrefix(lead, first+"… more")
				lead = first
			}
			if diff := cmp.Diff([]string{tc.lead, tc.rest}, []string{lead, rest}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMockLinks verifies that links are marked, lead nowhere, and keep the full address as a title.
func TestMockLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	page := w.preview(t, "our-x", "Hostile <b>&amp; @ada https://www.example.com/a/long/path/to/it")
	if links := elements(page, "a"); len(links) > 0 {
		t.Error("the preview has a link to another site")
	}
	var got []string
	for _, span := range elements(page, "span") {
		if class, _ := attribute(span, "class"); class == "tag" {
			title, _ := attribute(span, "title")
			got = append(got, textOf(span)+"|"+title)
		}
	}
	want := []string{"@ada|", "example.com/a/long/path/to…|https://www.example.com/a/long/path/to/it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if direction, _ := attribute(elements(withID(t, page, "mock-our-x"), "div")[1], "dir"); direction != "auto" {
		t.Errorf("the text's direction is %q", direction)
	}
}
