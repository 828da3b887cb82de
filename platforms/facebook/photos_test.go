// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// TestLostPhotos makes Facebook refuse a post with photos. If it no longer has one of them, the next preparation
// uploads them again.
func TestLostPhotos(t *testing.T) {
	there, gone := says(200, `{"id":"7"}`), problem(400, 100, 33, false)
	const feed, first, second = "POST /v25.0/42/feed", "GET /v25.0/7", "GET /v25.0/8"
	tests := map[string]struct {
		reason  string
		refusal http.HandlerFunc
		photos  []http.HandlerFunc
		class   platforms.Class
		subject platforms.Subject
		want    []string
	}{
		"lost":      {"the second is gone", problem(400, 100, 0, false), []http.HandlerFunc{there, gone}, platforms.ClassTransient, "", []string{feed, first, second}},
		"kept":      {"something else is at fault", problem(400, 100, 0, false), []http.HandlerFunc{there, there}, platforms.ClassPermanent, "", []string{feed, first, second}},
		"no answer": {"what cannot be read is no proof that it is gone", problem(400, 100, 0, false), []http.HandlerFunc{says(503, ``)}, platforms.ClassPermanent, "", []string{feed, first}},
		"unlisted":  {"a code that is in no table may mean that as well", problem(400, 98765, 0, false), []http.HandlerFunc{gone}, platforms.ClassTransient, "", []string{feed, first}},
		"named":     {"a code that names the file is believed", problem(400, 324, 1366046, false), nil, platforms.ClassPermanent, platforms.SubjectFile, []string{feed}},
		"blocked":   {"nothing is asked about photos when the account is blocked", problem(400, 368, 0, false), nil, platforms.ClassQuota, platforms.SubjectAccount, []string{feed}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			turn := 0
			calls := append([]http.HandlerFunc{tc.refusal}, tc.photos...)
			p, server := newFacebook(t, func(w http.ResponseWriter, r *http.Request) {
				calls[min(turn, len(calls)-1)](w, r)
				turn++
			})
			job := jobFor("hello")
			job.Content.Category, job.Content.Media = v1alpha1.CategoryImage, []platforms.File{{Name: "a.png"}, {Name: "b.png"}}
			job.Checkpoint = platforms.JoinFileIDs([]string{"7", "8"})
			got := p.Publish(t.Context(), job)
			if got.Outcome != platforms.Refused || got.Err.Class != tc.class || got.Err.Subject != tc.subject {
				t.Errorf("%s: got %+v, %+v", tc.reason, got, got.Err)
			}
			if diff := cmp.Diff(tc.want, server.Paths()); diff != "" {
				t.Errorf("%s: requests (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
