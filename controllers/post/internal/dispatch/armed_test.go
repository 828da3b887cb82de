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
		// expired is set if the calls that wait then expire.
		expired bool
		want    []string
	}{
		"armed calls do not need the place of a post":        {queued: [][2]string{{"a", "1"}, {"b", "2"}}, want: []string{"a", "b"}},
		"their number is bounded by itself":                  {queued: [][2]string{{"a", "1"}, {"b", "2"}, {"c", "3"}}, want: []string{"a", "b"}},
		"a place that becomes free goes to the next account": {queued: [][2]string{{"a", "1"}, {"b", "2"}, {"c", "3"}}, ended: []string{"b"}, want: []string{"a", "b", "c"}},
		"an account has one call at a time":                  {queued: [][2]string{{"a", "1"}, {"b", "1"}}, want: []string{"a"}},
		"an account's calls keep their order":                {queued: [][2]string{{"a", "1"}, {"b", "1"}, {"c", "1"}}, ended: []string{"a", "b"}, want: []string{"a", "b", "c"}},
		"an account that a post publishes to is waited for":  {queued: [][2]string{{"a", "p"}, {"b", "1"}}, want: []string{"b"}},
		"a call whose time is over leaves the queue":         {queued: [][2]string{{"a", "p"}, {"b", "1"}}, expired: true, want: []string{"b"}},
		"it follows when the post's call has ended":          {queued: [][2]string{{"a", "p"}, {"b", "1"}}, ended: []string{"post"}, want: []string{"b", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScheduler(1).WithArmed(2)
				if got := s.TryAcquire(Waiter{ID: "post", Team: "team", Due: due}, []string{"p"}); len(got) != 1 {
					t.Fatal("the post did not get its turn")
				}
				var begun []string
				expire := make(chan time.Time)
				for _, call := range tt.queued {
					wait := s.QueueArmed(Waiter{ID: call[0], Team: "team", Due: due}, call[1])
					go func() {
						if wait(expire) {
							begun = append(begun, call[0])
						}
					}()
					synctest.Wait()
				}
				for _, id := range tt.ended {
					s.Done(id)
					synctest.Wait()
				}
				if tt.expired {
					close(expire)
					synctest.Wait()
					s.Done("post")
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
