// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "testing"

func TestFolded(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"blanks":   {"platforms change them", " first\n\n  second\tthird ", "first second third"},
		"composed": {"and compose letters", "cafe\u0301", "caf\u00e9"},
		"nothing":  {"blanks alone are no text", " \n", ""},
		"case":     {"another case is another text", "Sale", "Sale"},
	} {
		if got := Fold(tc.text); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}
