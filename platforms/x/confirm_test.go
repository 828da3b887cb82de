// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"
	"strings"
	"testing"

	"github.com/herald-social/herald/platforms"
)

func TestConfirm(t *testing.T) {
	account := jobFor("").Account
	own := `{"data":{"id":"1991","author_id":"` + account.ID + `","text":"hello"}}`
	tests := map[string]struct {
		reason, id string
		status     int
		answer     string
		want       platforms.Ownership
		fails      bool
	}{
		"own":          {"the account wrote it", "1991", 200, own, platforms.OwnershipConfirmed, false},
		"foreign":      {"another one did", "1991", 200, `{"data":{"id":"1991","author_id":"666","text":"hello"}}`, platforms.OwnershipForeign, false},
		"gone":         {"X shows none of that id", "1991", 200, `{"errors":[{"title":"Not Found Error","type":"https://api.twitter.com/2/problems/resource-not-found"}]}`, platforms.OwnershipUnknown, false},
		"no author":    {"what was asked for is not there", "1991", 200, `{"data":{"id":"1991","text":"hello"}}`, platforms.OwnershipUnknown, false},
		"another post": {"an answer about something else says nothing", "1992", 200, own, platforms.OwnershipUnknown, false},
		"no id":        {"what is no id is not asked for", "1991/../../users", 200, own, platforms.OwnershipUnknown, false},
		"trouble":      {"X gave no answer", "1991", 503, `{}`, platforms.OwnershipUnknown, true},
		"limited":      {"nor did it say anything of the post", "1991", 429, `{}`, platforms.OwnershipUnknown, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, requests := newX(t, Config{}, says(tc.status, tc.answer))
			got, err := p.Confirm(t.Context(), account, tc.id)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s: it is %q, %v, want %q", tc.reason, got, err, tc.want)
			}
			for _, r := range requests() {
				if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/2/tweets/"+tc.id) {
					t.Errorf("it asked %s %s", r.Method, r.URL)
				}
			}
		})
	}
}
