// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"testing"
)

func TestEncodable(t *testing.T) {
	for _, row := range []struct {
		reason, label string
		split, want   bool
	}{
		{"63 characters of ASCII", strings.Repeat("a", 63), false, true},
		{"64 do not fit", strings.Repeat("a", 64), false, false},
		{"the prefix, 55 letters, the delimiter and three digits", strings.Repeat("a", 55) + "ü", false, true},
		{"a letter more", strings.Repeat("a", 56) + "ü", false, false},
		{"more characters than any encoding may have", strings.Repeat("ü", 60), false, false},
		{"what IDNA's other full stops separate is encoded one by one", strings.Repeat("日", 5) + "。" + strings.Repeat("本", 5), false, true},
		{"their sum must fit all the same", strings.Repeat("a", 31) + "．" + strings.Repeat("b", 32), false, false},
		{"the first one that is too long decides", strings.Repeat("a", 64) + "｡a", false, false},
		{"a character beyond U+FFFF takes five digits", "😀" + strings.Repeat("a", 53), false, false},
		{"its second half alone takes four", "😀" + strings.Repeat("a", 53), true, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if got := encodable(row.label, row.split); got != row.want {
				t.Errorf("encodable(%q) = %t, want %t", row.label, got, row.want)
			}
		})
	}
}
