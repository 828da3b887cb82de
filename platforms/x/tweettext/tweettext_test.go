// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lengthRows were verified with twitter-text 3.1.0.
var lengthRows = []struct {
	reason, text string
	want         int
}{
	{"an empty text has no weight", "", 0},
	{"ASCII weighs one per character", "We launched.", 12},
	{"a line break is a character", "a\r\nb", 4},
	{"a tab and a NUL are characters", "\t\x00", 2},
	{"accented Latin weighs one", "é", 1},
	{"a letter and its combining accent are one in normal form C", "e\u0301", 1},
	{"an accent without a base character counts separately", "x\u0301", 2},
	{"composition skips marks of a lower class", "a\u0316\u0301", 2},
	{"a mark of a lower class, new in Unicode 17, does not block an accent", "e\u1add\u0301", 3},
	{"the virama of a script from Unicode 16 does not block an accent", "e\U0001612f\u0301", 3},
	{"a mark of the same class blocks it", "e\u0897\u0301", 3},
	{"a cedilla joins past a mark of a higher class that Unicode 16 brought", "n\U00010d69\u0327", 3},
	{"Todhri letters of Unicode 16 compose with their mark in NFC", "\U000105d2\u0307", 2},
	{"three vowel signs of Gurung Khema compose in NFC", "\U0001611e\U0001611e\U0001611f", 2},
	{"conjoining Jamo make one syllable, outside the light range", "\u1112\u1161\u11ab", 2},
	{"more than 30 marks are not broken up by joiners", "a" + strings.Repeat("\u0316", 40) + "\u0301", 41},
	{"an explicit joiner counts, and blocks the accent", "a\u034f\u0301", 3},
	{"an author's joiner among more than 30 marks counts as well", "a" + strings.Repeat("\u0316", 31) + "\u034f\u0301", 34},
	{"U+10FF is the last character of the first light range", "\u10ff", 1},
	{"U+1100 is beyond it", "\u1100", 2},
	{"a zero width joiner weighs one", "\u200d", 1},
	{"a left-to-right mark is outside the light ranges", "\u200e", 2},
	{"U+200F is outside, U+2010 inside", "\u200f\u2010", 3},
	{"typographic quotes weigh one", "“‘’”", 4},
	{"U+201F is inside, U+2020 outside", "\u201f\u2020", 3},
	{"an ellipsis weighs two", "…", 2},
	{"U+2031 is outside, U+2032 inside", "\u2031\u2032", 3},
	{"U+2037 is inside, U+2038 outside", "\u2037\u2038", 3},
	{"Chinese weighs two per character", "推文", 4},
	{"a character beyond U+FFFF weighs two", "𠮷", 2},
	{"an emoji weighs two", "😀", 2},
	{"a skin tone does not add weight", "👍🏽", 2},
	{"a family is one emoji", "👨‍👩‍👧‍👦", 2},
	{"a profession with a skin tone is one emoji", "👩🏽‍💻", 2},
	{"a flag is one emoji", "🇯🇵", 2},
	{"two letters that are not a country's are two emoji", "🇽🇽", 4},
	{"England's flag, a sequence of tags, is one emoji", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", 2},
	{"unknown tags after a flag count two each", "🏴\U000e0067\U000e007f", 6},
	{"a keycap is one emoji", "1️⃣", 2},
	{"a keycap without the selector is one too", "#⃣", 2},
	{"a presentation selector belongs to a text-style character", "❤️", 2},
	{"the selector for text does not", "❤︎", 4},
	{"a selector after an emoji-style character counts separately", "😀️", 4},
	{"a copyright sign is text", "©", 1},
	{"with the selector it is an emoji", "©️", 2},
	{"a heart between two women is one emoji", "👩‍❤️‍💋‍👩", 2},
	{"a family that Emoji 11 lacks counts as its known parts and joiners", "👩‍👨‍👧", 2 + 1 + 2},
	{"Emoji 12.1's person at a computer weighs its parts and the joiner", "🧑‍💻", 5},
	{"a joiner at the end of a sequence is outside it", "👨‍", 3},
	{"a URL weighs 23", "https://example.com/a/long/path?with=a&query#here", 23},
	{"a short URL weighs 23 too", "http://a.co", 23},
	{"a bare domain is a URL", "a.co", 23},
	{"text around a URL has its own weight", "see https://example.com!", 28},
	{"two URLs", "a.com b.com", 47},
	{"emoji in a URL's domain are part of the URL", "http://😀.com", 23},
	{"a keycap's digit in a URL separates the keycap", "http://a.com/1️⃣", 27},
	{"normalization precedes the search for URLs", "http://e\u0301.com", 23},
	{"an unknown top-level domain makes no URL", "readme.invalidtld", 17},
	{"a byte order mark weighs two", "\ufeff", 2},
	{"a byte that is not UTF-8 weighs as U+FFFD", "a\xff", 3},
	{
		"a URL of a.com/p covers a.com. and half an emoji; the other half, an emoji and .com/p remain", "a.com.😀😀.com/p", 23 + 2 + 2 + 6,
	},
}

func TestLength(t *testing.T) {
	for _, row := range lengthRows {
		t.Run(row.reason, func(t *testing.T) {
			if got := Length(row.text); got != row.want {
				t.Errorf("Length(%+q) = %d, want %d", row.text, got, row.want)
			}
		})
	}
}

// TestValid checks whether posts are within the maximum length and contain only valid characters.
func TestValid(t *testing.T) {
	valid := func(text string) bool {
		length := Length(text)
		return length > 0 && length <= MaxWeightedLength && !HasInvalidCharacter(text)
	}
	for _, row := range []struct {
		reason, text string
		want         bool
	}{
		{"an empty post is refused", "", false},
		{"one character is enough", "a", true},
		{"a space is a character", " ", true},
		{"280 characters are allowed", strings.Repeat("a", MaxWeightedLength), true},
		{"281 are not", strings.Repeat("a", MaxWeightedLength+1), false},
		{"140 characters of weight two are allowed", strings.Repeat("文", 140), true},
		{"one more character is too many", strings.Repeat("文", 140) + "a", false},
		{"140 families are allowed", strings.Repeat("👨‍👩‍👧‍👦", 140), true},
		{"a URL may be longer than a post", "https://example.com/" + strings.Repeat("a", 1000), true},
		{"256 characters, a space and a URL fit", strings.Repeat("a", 256) + " a.com", true},
		{"257 do not", strings.Repeat("a", 257) + " a.com", false},
		{"the length in normal form C decides", strings.Repeat("e\u0301", 280), true},
		{"U+FFFE is refused", "a\ufffe", false},
		{"a byte order mark is refused", "\ufeffa", false},
		{"U+FFFF is refused", "a\uffffb", false},
		{"an invalid character after a URL is found", "https://a.com/b\ufeff", false},
		{"U+FFFD is allowed", "\ufffd", true},
		{"a directional mark is allowed", "\u202ea", true},
		{"a control character is allowed", "a\x00", true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if got := valid(row.text); got != row.want {
				t.Errorf("valid(%+q) = %t, want %t (length %d)", row.text, got, row.want, Length(row.text))
			}
		})
	}
}

// TestHostileTexts relies on the test timeout to fail: for a megabyte, a quadratic search would take hours.
func TestHostileTexts(t *testing.T) {
	const size = 1 << 20
	for _, row := range []struct {
		reason, text string
		want         int
	}{
		{"labels without end", strings.Repeat("a.", size/2), size},
		{"labels without their last character", strings.Repeat("a.", size/2) + "-.com", size + 5},
		{"labels that cannot be the last one", "a" + strings.Repeat(".a_b", size/4), size + 1},
		{"a label that cannot start a domain", strings.Repeat("＠", size) + ".com", 2*size + 4},
		{"parentheses that never close", "a.com/" + strings.Repeat("(", size), 23 + size},
		{"a path without an end", "a.com/" + strings.Repeat(".", size), 23 + size},
		{"a label too long to be encoded", "http://" + strings.Repeat("é", size) + ".com", size + 11},
		{"marks in descending order", "a" + strings.Repeat("\u0301\u0316", size/2), size},
		{"dots only", strings.Repeat(".", size), size},
		{"protocols only", strings.Repeat("http://", size/7), size / 7 * 7},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if got := Length(row.text); got != row.want {
				t.Errorf("Length = %d, want %d", got, row.want)
			}
		})
	}
}

func TestEncodable(t *testing.T) {
	for _, row := range []struct {
		reason, label string
		split, want   bool
	}{
		{"63 characters of ASCII", strings.Repeat("a", 63), false, true},
		{"64 do not fit", strings.Repeat("a", 64), false, false},
		{"the prefix, 55 letters, the delimiter and three digits", strings.Repeat("a", 55) + "ü", false, true},
		{"one letter too many", strings.Repeat("a", 56) + "ü", false, false},
		{"more characters than any encoding may have", strings.Repeat("ü", 60), false, false},
		{"labels between IDNA's other full stops are encoded separately", strings.Repeat("日", 5) + "。" + strings.Repeat("本", 5), false, true},
		{"the sum must fit too", strings.Repeat("a", 31) + "．" + strings.Repeat("b", 32), false, false},
		{"the first character beyond the limit decides", strings.Repeat("a", 64) + "｡a", false, false},
		{"a character above U+FFFF needs five digits", "😀" + strings.Repeat("a", 53), false, false},
		{"its second half needs four digits", "😀" + strings.Repeat("a", 53), true, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if got := encodable(row.label, row.split); got != row.want {
				t.Errorf("encodable(%q) = %t, want %t", row.label, got, row.want)
			}
		})
	}
}

// TestTables checks that both tables are sorted, as the binary search requires.
func TestTables(t *testing.T) {
	if !slices.IsSorted(tlds()) || !slices.IsSorted(emoji()) {
		t.Error("a table is not sorted")
	}
	longest := 0
	for _, name := range tlds() {
		longest = max(longest, utf8.RuneCountInString(name))
		for _, r := range name {
			if fold(r) != r {
				t.Errorf("%q is not folded", name)
			}
		}
	}
	if longest != maxTLDRunes {
		t.Errorf("the longest name has %d characters, maxTLDRunes is %d", longest, maxTLDRunes)
	}
	for _, sequence := range emoji() {
		_, width := utf8.DecodeRuneInString(sequence)
		if emojiLength(sequence, width) != len(sequence) {
			t.Errorf("%+q is not a single emoji", sequence)
		}
	}
	if len(tlds()) != 1574 || len(emoji()) != 1915 {
		t.Errorf("got %d names and %d sequences; twitter-text 3.1.0 has 1574 and 1915", len(tlds()), len(emoji()))
	}
}

// FuzzLength checks properties that hold for any text: the length does not depend on the normal form, grows with the
// text, and stays within the total weight of the text's parts.
func FuzzLength(f *testing.F) {
	for _, row := range lengthRows {
		f.Add(row.text)
	}
	for _, row := range urlRows {
		f.Add(row.text)
	}
	f.Add("a.co\x80")
	f.Add("\xf5\u0344")
	f.Fuzz(func(t *testing.T, text string) {
		length := Length(text)
		normal := normalize(text)
		if got := Length(normal); got != length {
			t.Errorf("in normal form C the length is %d, not %d", got, length)
		}
		// The normal form from package norm differs only if it contains additional joiners.
		if form := norm.NFC.String(text); strings.Count(form, graphemeJoiner) == strings.Count(text, graphemeJoiner) {
			if got := Length(form); got != length {
				t.Errorf("in package norm's normal form C the length is %d, not %d", got, length)
			}
		}
		if got := Length(string([]rune(text))); got != length {
			t.Errorf("with U+FFFD for invalid UTF-8, the length is %d, not %d", got, length)
		}
		if got := Length(text + "\nx"); got != length+2 {
			t.Errorf("with two characters on a new line the length is %d, not %d", got, length+2)
		}

		urls := urlsIn(normal)
		if most := heavyWeight*utf8.RuneCountInString(normal) + TransformedURLLength*len(urls); length > most {
			t.Errorf("the length is %d, more than its parts can weigh: %d", length, most)
		}
		if (length == 0) != (text == "") {
			t.Errorf("the length is %d", length)
		}
		checkRanges(t, normal, urls)
		checkRanges(t, text, urlsIn(text))
	})
}

// checkRanges checks that the ranges are in order, on character boundaries, and that each contains a domain.
func checkRanges(t *testing.T, text string, ranges []Range) {
	last := -1
	for _, r := range ranges {
		if r.Start <= last || r.End <= r.Start || r.End > len(text) {
			t.Fatalf("%v is out of order in a text of %d bytes", ranges, len(text))
		}
		last = r.Start
		if utf8.ValidString(text) && !utf8.ValidString(text[r.Start:r.End]) {
			t.Errorf("%v cuts a character", r)
		}
		if !strings.Contains(text[r.Start:r.End], ".") {
			t.Errorf("%q is no URL", text[r.Start:r.End])
		}
	}
}

func BenchmarkLength(b *testing.B) {
	for _, row := range []struct{ name, text string }{
		{"plain", strings.Repeat("We launched, and it works! ", 10)},
		{"sentences", strings.Repeat("We launched. It works. ", 12)},
		{"url", "We launched: see https://example.com/blog/launch?from=x for all of it, and example.org too."},
		{"chinese", strings.Repeat("我们发布了", 28)},
		{"emoji", strings.Repeat("👨‍👩‍👧‍👦👍🏽🇯🇵", 40)},
		{"decomposed", strings.Repeat("e\u0301", 140)},
		{"mixed", "We launched 🎉👩🏽‍💻 これはexample.comです — https://example.com/a_(b) #herald @herald 1️⃣ café"},
		{"labels", strings.Repeat("a.", 1<<15)},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.SetBytes(int64(len(row.text)))
			b.ReportAllocs()
			for b.Loop() {
				Length(row.text)
			}
		})
	}
}
