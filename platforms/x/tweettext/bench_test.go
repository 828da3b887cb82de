// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"testing"
)

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
