// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"testing"
	"unicode"
	"unicode/utf16"
)

// FuzzCaption checks that a description is counted in bytes and a title in UTF-16 code units, that both are refused
// only for angle brackets, and that a title is also refused if it is only whitespace.
func FuzzCaption(f *testing.F) {
	for _, text := range []string{"", "Hello", "é日本", "a < b", "<b>", "👨‍👩‍👧 and 🇮🇸", "\xff\xed\xa0\x80", "＜b＞", " \n\u00a0"} {
		f.Add(text)
	}
	limits := New(Config{}, nil).Capabilities()
	f.Fuzz(func(t *testing.T, text string) {
		brackets, blank, units := false, text != "", 0
		for _, r := range text {
			blank = blank && unicode.IsSpace(r)
			brackets = brackets || r == '<' || r == '>'
			units += utf16.RuneLen(r)
		}
		if got := limits.CaptionLength(text); got != len([]byte(text)) {
			t.Errorf("%q has %d bytes, counted %d", text, len(text), got)
		}
		if got := limits.TitleLength(text); got != units {
			t.Errorf("%q has %d UTF-16 code units, counted %d", text, units, got)
		}
		if got := []bool{limits.CaptionProblem(text) != "", limits.TitleProblem(text) != ""}; got[0] != brackets || got[1] != (brackets || blank) {
			t.Errorf("%q has brackets: %t, is blank: %t; refused: %t", text, brackets, blank, got)
		}
	})
}
