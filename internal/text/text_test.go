// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "testing"

func TestFold(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"blanks":   {"platforms change them", " first\n\n  second\tthird ", "first second third"},
		"composed": {"combining characters form letters", "cafe\u0301", "caf\u00e9"},
		"nothing":  {"blanks are not a text", " \n", ""},
		"case":     {"another case is another text", "Sale", "Sale"},
	} {
		if got := Fold(tc.text); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

func TestConsistsOf(t *testing.T) {
	const of = Letters + Digits + "_"
	for name, tc := range map[string]struct {
		reason, text string
		want         bool
	}{
		"shortest":        {"the lower bound is included", "aZ", true},
		"longest":         {"the upper bound is included", "aZ_0", true},
		"too short":       {"one character is below the bound", "a", false},
		"empty":           {"an empty string has no character", "", false},
		"too long":        {"five are above the bound", "aZ_09", false},
		"another at last": {"a line break is a character", "aZ\n", false},
		"another within":  {"all characters are checked", "a-Z", false},
		"not ASCII":       {"other scripts have similar letters", "aа", false},
		"not UTF-8":       {"platforms send any bytes", "a\xff", false},
	} {
		if got := Consists(tc.text, 2, 4, of); got != tc.want {
			t.Errorf("%s: %s: %q is %t", name, tc.reason, tc.text, got)
		}
	}
}

func TestTruncate(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text    string
		limit           int
		first           string
		want, wantBytes string
	}{
		"fits":      {"a fitting string stays unchanged", "abcdef", 6, "abcdef", "abcdef", "abcdef"},
		"too long":  {"the mark counts", "abcdefg", 6, "abcdef", "abcde…", "abc…"},
		"two bytes": {"characters and bytes differ", "éééééé", 6, "éééééé", "éééééé", "é…"},
		"emoji":     {"characters are not split", "ab😀defgh", 6, "ab😀def", "ab😀de…", "ab…"},
		"the mark":  {"only the ellipsis fits", "abcdefg", 3, "abc", "ab…", "…"},
		"empty":     {"the text is empty", "", 3, "", "", ""},
	} {
		if got := First(tc.text, tc.limit); got != tc.first {
			t.Errorf("%s: %s: the first are %q, want %q", name, tc.reason, got, tc.first)
		}
		if got := Truncate(tc.text, tc.limit); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
		if got := TruncateBytes(tc.text, tc.limit); got != tc.wantBytes {
			t.Errorf("%s: %s: got %q in bytes, want %q", name, tc.reason, got, tc.wantBytes)
		}
	}
}
