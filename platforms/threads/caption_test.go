// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestLength(t *testing.T) {
	tests := map[string]struct {
		reason, text string
		want         int
	}{
		"empty":         {"an empty text counts zero", "", 0},
		"letters":       {"a letter counts one", "hello", 5},
		"accents":       {"a letter with an accent counts one, composed or not", "café cafe\u0301", 9},
		"line":          {"a line break is one character, however it is written", "a\r\nb", 3},
		"kanji":         {"other scripts count as letters", "日本語", 3},
		"hangul":        {"a syllable is one, also when written in parts", "한\u1112\u1161\u11ab", 2},
		"digit":         {"a digit is not an emoji", "12#", 3},
		"emoji":         {"an emoji counts its bytes", "🎉", 4},
		"family":        {"a family counts the bytes of all its members", "👨‍👩‍👧‍👦", 25},
		"skin":          {"a skin tone counts its bytes", "👍🏽", 8},
		"flag":          {"a flag is two letters of four bytes", "🇮🇸", 8},
		"half a flag":   {"one letter of a flag is shown as an emoji", "🇮", 4},
		"keycap":        {"a keycap is an emoji, although it starts with a digit", "1️⃣", 7},
		"bare keycap":   {"a keycap without the selector", "1⃣", 4},
		"heart":         {"the selector makes an emoji", "❤️", 6},
		"sign":          {"a sign that can be an emoji counts as one", "©", 2},
		"subdivision":   {"a flag with tags counts them", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", 28},
		"mixed":         {"each for itself", "a🎉b", 6},
		"not UTF-8":     {"each byte of invalid UTF-8 counts one", "\xff\xfe", 2},
		"selector only": {"variation selectors after a blank are ignored", "a b", 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := length(tc.text); got != tc.want {
				t.Errorf("%s: %q counts %d, want %d", tc.reason, tc.text, got, tc.want)
			}
		})
	}
}

func TestCaptionProblem(t *testing.T) {
	five := "https://a.example https://b.example http://c.example/x www.d.example https://e.example/?q=1"
	tests := map[string]struct {
		reason, text string
		problem      bool
	}{
		"plain":                 {"ordinary text is fine", "We launched.", false},
		"empty":                 {"whether a caption may be empty is not decided here", "", false},
		"blanks":                {"Threads refuses a post without a visible character", " \n\t", true},
		"five addresses":        {"five are allowed", five, false},
		"six addresses":         {"six are not", five + " https://f.example", true},
		"repeated":              {"a repeated URL counts once", five + " https://a.example.", false},
		"East Asian stops":      {"no blanks separate URLs", strings.ReplaceAll(five, " ", "、") + "。https://f.example", true},
		"East Asian words":      {"East Asian letters end a URL", strings.ReplaceAll(five, " ", "と") + "とhttps://f.example", true},
		"five with stops":       {"the separator of five links does not matter", strings.ReplaceAll(five, " ", "、") + "。", false},
		"wide blanks":           {"a blank is a blank in any width", strings.ReplaceAll(five, " ", "\u3000") + "\u3000https://f.example", true},
		"the same with stops":   {"a repeated URL counts once", five + "「https://a.example」https://a.example、", false},
		"archived pages":        {"an address has another one in its path", strings.Repeat("https://web.example/2026/https://a.example/ ", 6), false},
		"in brackets":           {"closing punctuation is not part of a URL", five + " (https://b.example)", false},
		"paths in another case": {"paths are case-sensitive", five + " http://c.example/X", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := captionProblem(tc.text); (got != "") != tc.problem {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if !limits.Allows(v1alpha1.CategoryText) || len(limits.ListingAuthoritative) > 0 {
		t.Errorf("Threads accepts text, and its list is not proof: %+v", limits)
	}
	if got := limits.CaptionLength(strings.Repeat("🎉", 125)); got != limits.MaxCaption {
		t.Errorf("125 emoji of four bytes must fit; counted %d of %d", got, limits.MaxCaption)
	}
}

func FuzzLength(f *testing.F) {
	for _, text := range []string{"hello", "👨‍👩‍👧 and 🇮🇸", "1️⃣\u20e3", "\r\n\u200d", "\xff©️"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, clusters := length(text), uniseg.GraphemeClusterCount(text)
		if got < clusters || got > len(text) {
			t.Errorf("%q counts %d, with %d clusters in %d bytes", text, got, clusters, len(text))
		}
		captionProblem(text)
	})
}

func TestPictographRanges(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if !isPictograph(r) && utf8.ValidRune(r) && uniseg.GraphemeClusterCount(string(r)+"\u200D\U0001F600") == 1 {
			t.Fatalf("%U is a pictograph, but is not tried", r)
		}
	}
}
