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
	for _, row := range []struct {
		reason     string
		text, want string
	}{
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
		{"a starter that follows marks begins anew", "e" + many + "e\u0301", "e" + many + "é"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if got := normalize(row.text); got != row.want {
				t.Errorf("normalize(%+q) = %+q, want %+q", row.text, got, row.want)
			}
		})
	}
}

// TestComposeAgrees compares the composition for long runs of marks with package norm, which composes short ones: each
// code point that comes apart or may join another, alone and between a letter and an accent.
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
