// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"strings"
	"testing"
	"unicode"
)

func TestCaptionProblem(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string
		reason     string
	}{
		{"plain", "Hello", "", "nothing to refuse"},
		{"thirty hashtags", strings.Repeat("#a ", 30), "", "thirty are allowed"},
		{"thirty-one hashtags", strings.Repeat("#a ", 31), "31 hashtags", "one too many"},
		{"run together", strings.Repeat("#a", 31), "31 hashtags", "hashtags need no blank between them"},
		{"other scripts", strings.Repeat("#日本 ", 31), "31 hashtags", "a hashtag is of any script"},
		{"number signs", strings.Repeat("# ", 40), "", "a sign alone is no hashtag"},
		{"twenty mentions", strings.Repeat("@a ", 20), "", "twenty are allowed"},
		{"twenty-one mentions", strings.Repeat("@a ", 21), "mentions 21", "one too many"},
		{"addresses", strings.Repeat("me@example.com ", 40), "", "mail addresses mention nobody"},
		{"in parentheses", strings.Repeat("(@a)", 21), "mentions 21", "punctuation may stand before"},
	} {
		if got := captionProblem(tt.text); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q (%s)", tt.name, got, tt.want, tt.reason)
		}
	}
}

// FuzzCaption holds the counts against ones that are made rune by rune.
func FuzzCaption(f *testing.F) {
	for _, text := range []string{
		"", "Hello", strings.Repeat("#a", 31), strings.Repeat("@a ", 21), "＃日本 #️⃣ ##a #_ #é", "me@example.com (@a)@b .@c @@d", "\xff#\xff@a\x00", "é@a",
	} {
		f.Add(text)
	}
	limits := New(Config{}, nil).Capabilities()
	f.Fuzz(func(t *testing.T, text string) {
		runes := []rune(text)
		if got := limits.CaptionLength(text); got != len(runes) {
			t.Errorf("%q has %d characters, counted %d", text, len(runes), got)
		}
		tags, names := 0, 0
		for i, r := range runes {
			next, before := rune(-1), rune(-1)
			if i+1 < len(runes) {
				next = runes[i+1]
			}
			if i > 0 {
				before = runes[i-1]
			}
			switch {
			case (r == '#' || r == '＃') && (next == '_' || unicode.In(next, unicode.L, unicode.M, unicode.N)):
				tags++
			case r == '@' && isName(next) && before != '_' && before != '.' && before != '@' && !unicode.In(before, unicode.L, unicode.N):
				names++
			}
		}
		if got, want := captionProblem(text) != "", tags > maxHashtags || names > maxMentions; got != want {
			t.Errorf("%q has %d hashtags and %d mentions; refused: %t", text, tags, names, got)
		}
	})
}

func isName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.'
}
