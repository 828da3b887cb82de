// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestLength(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, text string
		want         int
	}{
		"letters":                               {"each letter counts", "hello", 5},
		"a family":                              {"a grapheme cluster counts once", "👨‍👩‍👧🇮🇸é", 3},
		"an address":                            {"an address counts as 23 characters", "see https://mastodon.example/a/very/long/path/to/somewhere?with=query now", 31},
		"a short address":                       {"a short address counts as 23 characters, too", "http://a.de", 23},
		"two":                                   {"each address counts", "https://a.de https://b.de", 47},
		"full stop":                             {"the full stop does not belong to the address", "https://a.de.", 24},
		"no scheme":                             {"Mastodon does not link an address without a scheme", "mastodon.example", 16},
		"no domain":                             {"the letters of an unlinked address count", "http://a", 8},
		"a long name":                           {"a linked address counts as 23 characters", "http://" + strings.Repeat("a", 40), 23},
		"a number":                              {"IP addresses count alike", "https://127.0.0.1/" + strings.Repeat("a", 40), 23},
		"mention":                               {"all of a local name counts", "@acme hi", 8},
		"remote mention":                        {"the domain of a mention does not count", "@acme@mastodon.example hi", 8},
		"e-mail":                                {"an e-mail address is not a mention", "me@mastodon.example", 19},
		"an address with a mention in its path": {"the name belongs to the address", "https://mastodon.example/@acme@other.example", 23},
		"hashtag":                               {"the sign of a hashtag counts", "#hello", 6},
		"empty":                                 {"an empty text has no characters", "", 0},
	} {
		if got := length(tc.text, 23); got != tc.want {
			t.Errorf("%s: %s: %q has %d characters, want %d", name, tc.reason, tc.text, got, tc.want)
		}
	}
}

// TestOptionsLength checks that a content warning counts towards the length of the text, and that addresses in it are
// not shortened.
func TestOptionsLength(t *testing.T) {
	t.Parallel()
	rules := New(Config{}, nil).Capabilities()
	for name, tc := range map[string]struct {
		reason  string
		options *v1alpha1.MastodonOptions
		want    int
	}{
		"no options": {"there is nothing to count", nil, 5},
		"others":     {"they are not text", &v1alpha1.MastodonOptions{Sensitive: true, Visibility: v1alpha1.MastodonDirect}, 5},
		"a warning":  {"the server adds it to the text", &v1alpha1.MastodonOptions{ContentWarning: "endings 👨‍👩‍👧"}, 14},
		"an address": {"the server counts addresses in the text only", &v1alpha1.MastodonOptions{ContentWarning: "https://a.de"}, 17},
		"blanks":     {"the server removes them", &v1alpha1.MastodonOptions{ContentWarning: " a "}, 6},
	} {
		if got := rules.For(&v1alpha1.PostTarget{Mastodon: tc.options}).CaptionLength("hello"); got != tc.want {
			t.Errorf("%s: %s: %d characters, want %d", name, tc.reason, got, tc.want)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	const html = `<p>Fish &amp; &lt;chips&gt;<br />now</p><p><a href="https://a.de/b"><span class="invisible">https://</span><span class="">a.de/b</span></a></p>`
	if got, want := plain(html), "Fish & <chips>\nnow\n\nhttps://a.de/b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzLength checks that links lie within the text, and that every non-empty text has a positive length.
func FuzzLength(f *testing.F) {
	for _, seed := range []string{"@a@b.c", "https://a.de/@b@c.d", "http://", "@@a", "#a@b.c https://é.de"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, at := range shownLinks(text) {
			if at.Start < 0 || at.End > len(text) || at.Start >= at.End {
				t.Errorf("%q has a link at %d to %d", text, at.Start, at.End)
			}
		}
		if n := length(text, 23); n < 0 || text != "" && n == 0 {
			t.Errorf("%q has %d characters", text, n)
		}
	})
}
