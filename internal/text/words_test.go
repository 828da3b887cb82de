// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"testing"

	"github.com/herald-social/herald/internal/text"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Case":         {"a search ignores case", "Launch DAY", "launch day"},
		"Space":        {"line breaks separate words", "one\n\n two\tthree ", "one two three"},
		"Diacritics":   {"users rarely type accents in a search", "Résumé über São Paulo", "resume uber sao paulo"},
		"Decomposed":   {"both Unicode forms are equal", "Re\u0301sume\u0301", "resume"},
		"Letters":      {"these letters have no decomposition", "Straße, Łódź, Ærø", "strasse, lodz, aero"},
		"Greek":        {"a final sigma is a sigma", "ΟΔΟΣ, οδός", "οδοσ, οδοσ"},
		"Turkish":      {"I and ı are one letter, as in a search without a language", "İstanbul IĞDIR, ığdır", "istanbul igdir, igdir"},
		"FullWidth":    {"letters from a Japanese keyboard", "ＡＢＣ", "abc"},
		"Korean":       {"syllables are not split", "한국", "한국"},
		"Vietnamese":   {"two marks on a letter", "Việt Đà", "viet da"},
		"Emoji":        {"emojis are not letters", "🎉 Party", "🎉 party"},
		"InvalidUTF-8": {"invalid bytes are replaced", "a\xffB", "a\uFFFDb"},
	} {
		if got := text.Plain(tc.text); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}
