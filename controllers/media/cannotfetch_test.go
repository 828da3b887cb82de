// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"strings"
	"testing"
)

func TestCannotFetch(t *testing.T) {
	for name, tc := range map[string]struct{ reason, url, want string }{
		"plain":    {"it is told", "https://a.example/b.png", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"query":    {"it may hold a signature", "https://a.example/b.png?X-Amz-Signature=secret", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"fragment": {"it may hold a token", "https://a.example/b.png#token=secret", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"no path":  {"the query begins at once", "https://a.example?key=secret", "The source https://a.example cannot be fetched: it is empty."},
	} {
		if got := cannotFetch(tc.url, "it is empty"); got != tc.want {
			t.Errorf("%s: %s, but got %q", name, tc.reason, got)
		}
	}
}

// An event's message holds 1,000 bytes, and the reason follows the URL.
func TestLongAddresses(t *testing.T) {
	got := cannotFetch("https://a.example/"+strings.Repeat("é", 1015), "it is empty")
	if !strings.HasPrefix(got, "The source https://a.example/é") || !strings.HasSuffix(got, "é… cannot be fetched: it is empty.") || len(got) > 1000 {
		t.Errorf("a long address hides why: %q", got)
	}
}
