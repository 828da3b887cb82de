// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestArmedCalls covers armed calls in a scheduler with one place for posts and two for armed calls.
func TestArmedCalls(t *testing.T) {
	due := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		// queued are the calls as "name account"; a post of its own holds the account p and the only place for posts.
		queued [][2]string
		// ended are the calls that end, in order.
		ended []string
		want  []string
	}{
		"armed calls do not need the place of a post":        {[][2]string{{"a", "1"}, {"b", "2"}}, nil, []string{"a", "b"}},
		"their number is bounded by itself":                  {[][2]string{{"a", "1"}, {"b", "2"}, {"c", "3"}}, nil, []string{"a", "b"}},
		"a place that becomes free goes to the next account": {[][2]string{{"a", "1"}, {"b", "2"}, {"c", "3"}}, []string{"b"}, []string{"a", "b", "c"}},
		"an account has one call at a time":                  {[][2]string{{"a", "1"}, {"b", "1"}}, nil, []string{"a"}},
		"an account's calls keep their order":                {[][2]string{{"a", "1"}, {"b", "1"}, {"c", "1"}}, []string{"a", "b"}, []string{"a", "b", "c"}},
		"an account that a post publishes to is waited for":  {[][2]string{{"a", "p"}, {"b", "1"}}, nil, []string{"b"}},
		"it follows when the post's call has ended":          {[][2]string{{"a", "p"}, {"b", "1"}}, []string{"post"}, []string{"b", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScheduler(1).WithArmed(2)
				if got := s.TryAcquire(Waiter{ID: "post", Team: "team", Due: due}, []string{"p"}); len(got) != 1 {
					t.Fatal("the post did not get its turn")
				}
				var begun []string
				for _, call := range tt.queued {
					wait := s.QueueArmed(Waiter{ID: call[0], Team: "team", Due: due}, call[1])
					go func() {
						wait()
						begun = append(begun, call[0])
					}()
					synctest.Wait()
				}
				for _, id := range tt.ended {
					s.Done(id)
					synctest.Wait()
				}
				if diff := cmp.Diff(tt.want, begun); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				for range 3 * len(tt.queued) { // lets the others go, so that no goroutine is left
					s.Done("post")
					for _, call := range tt.queued {
						s.Done(call[0])
						synctest.Wait()
					}
				}
				if s.armed.used != 0 || len(s.gates) != 0 || len(s.tickets) != 0 {
					t.Errorf("%d armed places, %d gates and %d tickets are left", s.armed.used, len(s.gates), len(s.tickets))
				}
			})
		})
	}
}
