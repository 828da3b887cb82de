// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestNormalize(t *testing.T) {
	many := strings.Repeat("\u0316", 40) // of class 220
	for _, row := range []struct{ reason, text, want string }{
		{"ASCII stays", "a.com", "a.com"},
		{"accented Latin stays", "é", "é"},
		{"an accent joins its letter", "e\u0301", "é"},
		{"a code point that Unicode only keeps for old texts is replaced", "\u212b", "Å"},
		{"what is excluded from composition comes apart", "\u0958", "\u0915\u093c"},
		{"what is not UTF-8 is replaced, byte by byte", "e\u0301\xff\xfe", "é\ufffd\ufffd"},
		{"and keeps no marks from coming apart", "\xf5\u0344", "\ufffd\u0308\u0301"},
		{"an author's joiner stays", "e\u034f\u0301", "e\u034f\u0301"},
		{"an accent joins past any number of marks of a lower class", "e" + many + "\u0301", "é" + many},
		{"marks are put in order however many there are", "x" + strings.Repeat("\u0301", 40) + "\u0316", "x\u0316" + strings.Repeat("\u0301", 40)},
		{"of two accents of one class only the first joins", "e" + many + "\u0301\u0308", "é" + many + "\u0308"},
		{"two marks of different classes join one after the other", "a\u0323\u0302" + strings.Repeat("\u0308", 40), "ậ" + strings.Repeat("\u0308", 40)},
		{"syllables beside so many marks are joined too", "\u1112\u1161\u11ab" + many, "한" + many},
		{"and are not taken apart", "한" + many, "한" + many},
		{"marks of Unicode 16 are put in order", "x\u0897\u0316\U0001612f", "x\U0001612f\u0316\u0897"},
		{"and let what joins join past them", "e\u1add\u0301", "é\u1add"},
		{"unless they are of its class", "e\u0897\u0301", "e\u0897\u0301"},
		{"two of three signs of Unicode 16 join, and then the third", "\U0001611e\U0001611e\U0001611f", "\U00016126"},
		{"a pair and a third do so too", "\U00016121\U0001611f", "\U00016126"},
		{"whole signs stay", "\U00016126\U00016d6a", "\U00016126\U00016d6a"},
		{"an accent keeps signs from joining", "\U000113c2\u0301\U000113c2", "\U000113c2\u0301\U000113c2"},
		{"new marks and many old ones", "e\u1add" + many + "\u0301", "é\u1add" + many},
		{"a starter that follows marks begins anew", "e" + many + "e\u0301", "e" + many + "é"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if got := normalize(row.text); got != row.want {
				t.Errorf("normalize(%+q) = %+q, want %+q", row.text, got, row.want)
			}
		})
	}
}

// TestComposeAgrees compares how long sequences of marks are composed with how package norm composes short ones, for
// each code point that decomposes or may compose with another, alone and between a letter and an accent.
func TestComposeAgrees(t *testing.T) {
	compared := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		p := norm.NFC.PropertiesString(string(r))
		if !utf8.ValidRune(r) || p.BoundaryBefore() && p.Decomposition() == nil {
			continue
		}
		compared++
		for _, text := range []string{string(r), "a" + string(r) + "\u0301"} {
			if got, want := compose(decompose(text)), norm.NFC.String(text); got != want {
				t.Errorf("compose(decompose(%+q)) = %+q, want %+q", text, got, want)
			}
		}
	}
	if compared < 2000 {
		t.Errorf("only %d code points were compared", compared)
	}
}

// TestNewerAgrees compares the additions of Unicode 16 and 17 with package norm, which has either the same data for a
// character or, in an older version, none.
func TestNewerAgrees(t *testing.T) {
	marks := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		class, p := newClass(r), norm.NFC.PropertiesString(string(r))
		if class != 0 {
			marks++
			if p.CCC() != 0 && p.CCC() != class {
				t.Errorf("%U has class %d, not %d", r, p.CCC(), class)
			}
		}
		pair, ok := newPairs[r]
		if whole := string(pair[:]); ok && p.Decomposition() != nil && norm.NFC.String(whole) != string(r) {
			t.Errorf("%+q does not make %U", whole, r)
		}
		if (ok || class != 0) && !newer(r) {
			t.Errorf("%U is passed over", r)
		}
		if newer(r) && class == 0 && unicode.Is(unicode.M, r) && p.CCC() != 0 {
			t.Errorf("%U is a mark of class %d, not a letter that begins a pair", r, p.CCC())
		}
	}
	if marks != 46 || len(newPairs) != 20 {
		t.Errorf("there are %d marks and %d pairs; Unicode 16 and 17 brought 46 and 20", marks, len(newPairs))
	}
}
