// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"strings"
	"testing"
	"unicode"
)

func TestCaptionProblem(t *testing.T) {
	for _, tt := range []struct{ name, text, want, reason string }{
		{"plain", "Hello", "", "a valid caption"},
		{"thirty hashtags", strings.Repeat("#a ", 30), "", "thirty are allowed"},
		{"thirty-one hashtags", strings.Repeat("#a ", 31), "31 hashtags", "one too many"},
		{"run together", strings.Repeat("#a", 31), "31 hashtags", "hashtags need no blank between them"},
		{"other scripts", strings.Repeat("#日本 ", 31), "31 hashtags", "a hashtag may be in any script"},
		{"number signs", strings.Repeat("# ", 40), "", "a sign alone is not a hashtag"},
		{"twenty mentions", strings.Repeat("@a ", 20), "", "twenty are allowed"},
		{"twenty-one mentions", strings.Repeat("@a ", 21), "mentions 21", "one too many"},
		{"addresses", strings.Repeat("me@example.com ", 40), "", "an email address is not a mention"},
		{"in parentheses", strings.Repeat("(@a)", 21), "mentions 21", "a mention may follow punctuation"},
		{"fragments", strings.Repeat("#a ", 29) + "https://shop.example/faq#price https://shop.example/faq#time", "", "a fragment of an address is no hashtag"},
		{"fragments of a path", strings.Repeat("#a ", 30) + "https://app.example/#/start www.example.com/?q=#x example.com/#y", "", "Instagram counts a tag in any form of address"},
		{"an address ends", "https://a.example/#x" + strings.Repeat("\u3000#a", 31), "31 hashtags", "at a blank of any width"},
		{"escaped characters", strings.Repeat("&#39; &#x27;", 31), "", "an escaped character is no hashtag"},
		{"entities apart", strings.Repeat("&#a ", 31), "31 hashtags", "an ampersand alone has no effect"},
		{"keycaps", strings.Repeat("#\ufe0f\u20e3", 31) + strings.Repeat("#\u20e3", 31), "", "a keycap is an emoji"},
		{"keycap and hashtag", strings.Repeat("#\ufe0f\u20e3#a", 31), "31 hashtags", "an emoji is not a word"},
		{"emoji", strings.Repeat("#🔥", 31), "31 hashtags", "a hashtag may be of emoji"},
		{"in words", strings.Repeat("C#a a#b é#c e\u0301#d 7#e _#f ", 31), "", "a sign inside a word does not start a hashtag"},
		{"after a word with a hashtag", strings.Repeat("a#b#c ", 31), "", "a second sign inside a word does not start one either"},
		{"wide", strings.Repeat("＃日本　", 31), "31 hashtags", "the full-width sign of Japanese keyboards counts"},
		{"composed and not", strings.Repeat("#é ", 15) + strings.Repeat("#e\u0301 ", 16), "31 hashtags", "both forms of a letter count alike"},
		{"marks of other scripts", strings.Repeat("#हिन्दी", 31), "31 hashtags", "combining marks belong to a word"},
		{"numbers", strings.Repeat("#2026 ", 31), "31 hashtags", "digits make a hashtag on Instagram"},
		{"line breaks", strings.Repeat("#a\r\n", 31), "31 hashtags", "every door's line breaks are blanks"},
		{"names in addresses", strings.Repeat("https://www.tiktok.com/@a youtube.com/@b ", 21), "", "a path is not a mention"},
		{"names with a slash", strings.Repeat("@a.b/@c.d ", 11), "mentions 22", "mentions around a slash are not an address"},
		{"other marks", strings.Repeat("e\u0301@a 日@b @@c ＠d @ @. ", 21), "", "signs inside a word, or without a name, are not mentions"},
		{"behind emoji", strings.Repeat("❤️@a", 21), "mentions 21", "an emoji is not a word"},
	} {
		if got := captionProblem(tt.text); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q (%s)", tt.name, got, tt.want, tt.reason)
		}
	}
}

// FuzzCaption compares the counts with counts made character by character. They are equal for captions without
// addresses; addresses can only reduce a count.
func FuzzCaption(f *testing.F) {
	for _, text := range []string{
		"", "Hello", strings.Repeat("#a", 31), strings.Repeat("@a ", 21), "＃日本 #️⃣ ##a #_ #é", "me@example.com (@a)@b .@c @@d", "\xff#\xff@a\x00", "é@a",
		"a#b#c&#39;&#x27;#🔥#👨‍👩‍👧", "e\u0301#a❤️#b❤️@c", "https://a.example/#b @c/@d www.a.example/@e",
	} {
		f.Add(text)
	}
	limits := New(Config{}, nil).Capabilities()
	f.Fuzz(func(t *testing.T, text string) {
		runes := []rune(text)
		if got := limits.CaptionLength(text); got != len(runes) {
			t.Errorf("%q has %d characters, but %d were counted", text, len(runes), got)
		}
		tags, names := slowCounts(runes)
		gotTags, gotNames := countHashtags(text), countMentions(text)
		if addresses().MatchString(text) {
			if gotTags > tags || gotNames > names {
				t.Errorf("%q has at most %d hashtags and %d mentions, but %d and %d were counted", text, tags, names, gotTags, gotNames)
			}
		} else if gotTags != tags || gotNames != names {
			t.Errorf("%q has %d hashtags and %d mentions, but %d and %d were counted", text, tags, names, gotTags, gotNames)
		}
	})
}

// slowCounts counts hashtags and mentions character by character.
func slowCounts(runes []rune) (tags, names int) {
	at := func(i int) rune {
		if i < 0 || i >= len(runes) {
			return ' '
		}
		return runes[i]
	}
	word := func(r rune) bool {
		return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || (unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r)) && r != 0xFE0E && r != 0xFE0F
	}
	picture := func(r rune) bool {
		return r >= 0x2300 && r <= 0x23FF || r >= 0x2600 && r <= 0x27BF || r >= 0x2B00 && r <= 0x2BFF || r >= 0x1F000 && r <= 0x1FAFF
	}
	counted := -1 // end of the last counted hashtag
	for i, r := range runes {
		if first := at(i + 1); (r == '#' || r == '＃') && (first == '_' || unicode.IsLetter(first) || unicode.IsNumber(first) || picture(first)) {
			end := i + 2
			for end < len(runes) && (at(end) == '_' || at(end) == 0x200D || unicode.IsLetter(at(end)) || unicode.IsNumber(at(end)) || unicode.IsMark(at(end)) || picture(at(end))) {
				end++
			}
			if i == counted || !word(at(i-1)) && (at(i-1) != '&' || at(end) != ';') {
				tags++
				counted = end
			}
		}
		if r == '@' && isName(at(i+1)) && !word(at(i-1)) && at(i-1) != '.' && at(i-1) != '@' {
			names++
		}
	}
	return tags, names
}

// isName reports whether a name may start with r.
func isName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
}
