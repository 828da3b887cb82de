// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"strings"
	"testing"
)

// FuzzCaption compares the count with the definition of UTF-16: two units for code points beyond the first 65,536, and
// one for all others.
func FuzzCaption(f *testing.F) {
	for _, text := range []string{"", "Hello", "é日本", "👨‍👩‍👧 and 🇮🇸", "\xff\xed\xa0\x80", strings.Repeat("🎉", 1100), "\ufffd\U0010ffff"} {
		f.Add(text)
	}
	limits := New(Config{}, nil).Capabilities()
	f.Fuzz(func(t *testing.T, text string) {
		want := 0
		for _, r := range text {
			want++
			if r > 0xffff {
				want++
			}
		}
		if got := limits.CaptionLength(text); got != want {
			t.Errorf("%q has %d UTF-16 code units, counted %d", text, want, got)
		}
	})
}
