// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"strings"
	"testing"
)

func TestCaptionProblem(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string
		reason     string
	}{
		{"plain", "Hello", "", "nothing to refuse"},
		{"thirty hashtags", strings.Repeat("#a ", 30), "", "thirty are allowed"},
		{"thirty-one hashtags", strings.Repeat("#a ", 31), "31 hashtags", "one too many"},
		{"run together", strings.Repeat("#a", 31), "31 hashtags", "hashtags need no blank between them"},
		{"other scripts", strings.Repeat("#日本 ", 31), "31 hashtags", "a hashtag is of any script"},
		{"number signs", strings.Repeat("# ", 40), "", "a sign alone is no hashtag"},
		{"twenty mentions", strings.Repeat("@a ", 20), "", "twenty are allowed"},
		{"twenty-one mentions", strings.Repeat("@a ", 21), "mentions 21", "one too many"},
		{"addresses", strings.Repeat("me@example.com ", 40), "", "mail addresses mention nobody"},
		{"in parentheses", strings.Repeat("(@a)", 21), "mentions 21", "punctuation may stand before"},
	} {
		if got := captionProblem(tt.text); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q (%s)", tt.name, got, tt.want, tt.reason)
		}
	}
}
