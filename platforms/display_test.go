// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/realplatforms"
)

// TestLinks verifies which parts of a text each platform shows as links, and how.
func TestLinks(t *testing.T) {
	t.Parallel()
	const all = "See www.example.org, https://a.com/b. great,#tag @ada"
	tests := []struct {
		name     string
		platform v1alpha1.Platform
		text     string
		want     []string
	}{
		{"X links addresses without a scheme, and a tag after a comma", v1alpha1.PlatformX, all, []string{"example.org", "a.com/b", "#tag", "@ada"}},
		{"Threads links addresses and the topic", v1alpha1.PlatformThreads, all, []string{"www.example.org", "https://a.com/b", "#tag", "@ada"}},
		{"Instagram does not link addresses", v1alpha1.PlatformInstagram, all, []string{"#tag", "@ada"}},
		{"Facebook has no mentions by name", v1alpha1.PlatformFacebook, all, []string{"www.example.org", "https://a.com/b", "#tag"}},
		{"TikTok wants a blank before a tag", v1alpha1.PlatformTikTok, all, []string{"@ada"}},
		{"YouTube links all addresses", v1alpha1.PlatformYouTube, all, []string{"www.example.org", "https://a.com/b", "#tag", "@ada"}},

		{"a bare domain with a known ending is an address on X", v1alpha1.PlatformX, "example.com and example.notatld", []string{"example.com"}},
		{"the path is cut after 15 characters, as in X's own example", v1alpha1.PlatformX, "https://dev.twitter.com/terms/display-guidelines", []string{"dev.twitter.com/terms/display-…"}},
		{"a query is part of the cut text", v1alpha1.PlatformX, "http://www.youtube.com/watch?v=oHg5SJYRHA0", []string{"youtube.com/watch?v=oHg5SJ…"}},
		{"a short path is shown in full", v1alpha1.PlatformX, "https://example.com/2026/a/", []string{"example.com/2026/a"}},
		{"an email address is neither a link nor a mention", v1alpha1.PlatformX, "ada@example.com", nil},
		{"an ampersand or a letter before a tag, a second sign, and a scheme after it", v1alpha1.PlatformX, "&#a b#c #d#e #f://g #h", []string{"#h"}},
		{"a number is not a tag", v1alpha1.PlatformX, "#2026 #2026goals ＃東京", []string{"#2026goals", "＃東京"}},
		{"a keycap is an emoji", v1alpha1.PlatformX, "#\ufe0f\u20e3", nil},
		{"signs before and after a name", v1alpha1.PlatformX, "$@a !@b @c@ d@e (@f)", []string{"@f"}},
		{"a cashtag, without the blank before it", v1alpha1.PlatformX, "buy $HRLD $BRK.A now, not US$DIR", []string{"$HRLD", "$BRK.A"}},
		{"a tag within an address belongs to it", v1alpha1.PlatformX, "https://example.com/#a", []string{"example.com/#a"}},

		{"Threads has one topic", v1alpha1.PlatformThreads, "#one #two", []string{"#one"}},
		{"an address directly behind Japanese text", v1alpha1.PlatformThreads, "https://a.exampleとhttps://b.example", []string{"https://a.example", "https://b.example"}},
		{"a name at the end of a sentence", v1alpha1.PlatformThreads, "by @ada.l.", []string{"@ada.l"}},
		{"consecutive tags", v1alpha1.PlatformInstagram, "#a#b", []string{"#a", "#b"}},
		{"a tag in an address", v1alpha1.PlatformInstagram, "https://example.org/#a #b", []string{"#b"}},
		{"a closing bracket and a quotation mark are not part of an address", v1alpha1.PlatformFacebook, `("https://a.com/b")`, []string{"https://a.com/b"}},
		{"names and tags, delimited by blanks", v1alpha1.PlatformTikTok, "#a @b.c.\n#d", []string{"#a", "@b.c", "#d"}},
		{"a long address is shortened", v1alpha1.PlatformYouTube, "https://www.example.com/some/long/path/to/a/page", []string{"https://www.example.com/some/long/pat..."}},
		{"more than 60 tags are all ignored", v1alpha1.PlatformYouTube, strings.Repeat("#a ", 61), nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			limits, _ := realplatforms.All().Capabilities(tc.platform)
			var got []string
			for _, l := range limits.Display.Links(tc.text) {
				got = append(got, shownAs(tc.text, l.Start, l.End, l.Shown))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func shownAs(text string, start, end int, shown string) string {
	if shown != "" {
		return shown
	}
	return text[start:end]
}

// FuzzLinks verifies that links are in order, do not overlap, are not empty and do not split characters.
func FuzzLinks(f *testing.F) {
	for _, text := range []string{"", "@a #b https://c.example/d", "日本語example.com/é #東京@a", "#@#@\xff@a\xff#b", "www.www.example.com.https://a.example", "a#b.example $a\n$b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, platform := range []v1alpha1.Platform{
			v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformInstagram, v1alpha1.PlatformFacebook, v1alpha1.PlatformTikTok, v1alpha1.PlatformYouTube,
		} {
			limits, _ := realplatforms.All().Capabilities(platform)
			end := 0
			links := limits.Display.Links(text)
			for _, l := range links {
				if l.Start < end || l.End <= l.Start || l.End > len(text) {
					t.Fatalf("%s: %v in %q", platform, links, text)
				}
				end = l.End
				if utf8.ValidString(text) && !utf8.ValidString(text[l.Start:l.End]) {
					t.Fatalf("%s cuts a character of %q: %v", platform, text, l)
				}
			}
		}
	})
}
