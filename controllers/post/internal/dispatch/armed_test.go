// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestArmedCalls covers armed calls in a scheduler with one place for posts and two for armed calls.
func TestArmedCalls(t *testing.T) {
	due := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		// queued holds the calls, each as a name and an account. A separate post holds account p and the only place for
		// posts.
		queued [][2]string
		// unopened lists the calls whose group is not open.
		unopened []string
		// late is the time after the armed calls at which a post that waits for account 1 is due. If it is negative, the
		// post is due before them.
		late time.Duration
		// ended lists the calls that end, in order.
		ended []string
		// expired is set if the calls that still wait then expire.
		expired bool
		want    []string
	}{
		"armed calls do not use the slots of posts":                 {queued: [][2]string{{"a", "1"}, {"b", "2"}}, want: []string{"a", "b"}},
		"armed calls have their own limit":                          {queued: [][2]string{{"a", "1"}, {"b", "2"}, {"c", "3"}}, want: []string{"a", "b"}},
		"a free slot goes to the next account":                      {queued: [][2]string{{"a", "1"}, {"b", "2"}, {"c", "3"}}, ended: []string{"b"}, want: []string{"a", "b", "c"}},
		"an account has one call at a time":                         {queued: [][2]string{{"a", "1"}, {"b", "1"}}, want: []string{"a"}},
		"an account's calls keep their order":                       {queued: [][2]string{{"a", "1"}, {"b", "1"}, {"c", "1"}}, ended: []string{"a", "b"}, want: []string{"a", "b", "c"}},
		"an armed call waits for a post's call on the same account": {queued: [][2]string{{"a", "p"}, {"b", "1"}}, want: []string{"b"}},
		"a call whose send window has passed leaves the queue":      {queued: [][2]string{{"a", "p"}, {"b", "1"}}, expired: true, want: []string{"b"}},
		"an armed call follows when the post's call has returned":   {queued: [][2]string{{"a", "p"}, {"b", "1"}}, ended: []string{"post"}, want: []string{"b", "a"}},
		"a call is not made before its group is open":               {queued: [][2]string{{"a", "1"}, {"b", "2"}}, unopened: []string{"a"}, want: []string{"b"}},
		"the account's next call waits too, so both keep their order": {
			queued: [][2]string{{"a", "1"}, {"b", "1"}}, unopened: []string{"a"}, want: nil,
		},
		"the next call follows if the first is not made":               {queued: [][2]string{{"a", "1"}, {"b", "1"}}, unopened: []string{"a"}, ended: []string{"a"}, want: []string{"b"}},
		"a post that is not armed does not overtake":                   {queued: [][2]string{{"a", "1"}}, unopened: []string{"a"}, late: time.Nanosecond, ended: []string{"post"}, want: nil},
		"a post that is due at the same time does not overtake either": {queued: [][2]string{{"a", "1"}}, unopened: []string{"a"}, ended: []string{"post"}, want: nil},
		"the post follows the armed call":                              {queued: [][2]string{{"a", "1"}}, ended: []string{"post", "a"}, want: []string{"a", "late"}},
		"a post that is due earlier is sent first":                     {queued: [][2]string{{"a", "1"}}, unopened: []string{"a"}, late: -time.Second, ended: []string{"post"}, want: []string{"late"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScheduler(1).WithArmed(2)
				if got := s.TryAcquire(Waiter{ID: "post", Team: "team", Due: due}, []string{"p"}); len(got) != 1 {
					t.Fatal("the post did not get its turn")
				}
				var started []string
				expire := make(chan time.Time)
				calls := map[string]*ArmedCall{}
				for _, call := range tt.queued {
					calls[call[0]] = s.QueueArmed(Waiter{ID: call[0], Team: "team", Platform: "x", Due: due}, call[1])
				}
				for _, call := range tt.queued {
					if !slices.Contains(tt.unopened, call[0]) {
						calls[call[0]].Open()
					}
					go func() {
						if calls[call[0]].Wait(expire) {
							started = append(started, call[0])
						}
					}()
					synctest.Wait()
				}
				s.TryAcquire(Waiter{ID: "late", Team: "team", Due: due.Add(tt.late), Wake: func() { started = append(started, "late") }}, []string{"1"})
				for _, id := range tt.ended {
					if call := calls[id]; call != nil {
						call.Done()
					}
					s.Done(id)
					synctest.Wait()
				}
				if tt.expired {
					close(expire)
					synctest.Wait()
					s.Done("post")
					synctest.Wait()
					started = slices.DeleteFunc(started, func(id string) bool { return id == "late" })
				}
				if diff := cmp.Diff(tt.want, started); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				waiting := 0
				for _, call := range tt.queued {
					if !tt.expired && !slices.Contains(slices.Concat(tt.unopened, tt.ended, started), call[0]) {
						waiting++
					}
				}
				if s.armed.opened != waiting {
					t.Errorf("%d opened calls wait for their turn, not %d", s.armed.opened, waiting)
				}
				if waiting > 0 && !s.Busy() {
					t.Error("the scheduler is not busy, although an opened call waits")
				}
				if !tt.expired {
					close(expire)
				}
				for range 3 * len(tt.queued) { // lets the others go, so that no goroutine is left
					s.Done("post")
					for _, call := range calls {
						call.Done()
						synctest.Wait()
					}
					s.Done("late")
				}
				if s.Busy() || s.armed.used != 0 || s.armed.opened != 0 || len(s.armed.ready) != 0 || len(s.armed.byTeam)+len(s.armed.byPlatform) != 0 || len(s.gates) != 0 || len(s.tickets) != 0 {
					t.Errorf("%+v, %d gates and %d tickets remain", s.armed, len(s.gates), len(s.tickets))
				}
			})
		})
	}
}

// TestArmedShares checks which calls get the last two of eight places. Each call is to a different account.
func TestArmedShares(t *testing.T) {
	type calls struct {
		team, platform string
		n, want        int
	}
	for name, tt := range map[string][]calls{
		"a team alone leaves some slots to others":      {{"a", "x", 9, 6}},
		"a team without calls gets one":                 {{"a", "x", 7, 6}, {"b", "x", 3, 1}},
		"a platform without calls gets one":             {{"a", "slow", 7, 6}, {"a", "x", 3, 1}},
		"the last slot goes to another platform":        {{"a", "slow", 7, 6}, {"b", "slow", 1, 1}, {"c", "slow", 1, 0}, {"c", "x", 1, 1}},
		"the number of slots limits all calls together": {{"a", "x", 6, 6}, {"b", "y", 2, 1}, {"c", "z", 2, 1}, {"d", "w", 2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewScheduler(1).WithArmed(8)
			var all []*ArmedCall
			for _, of := range tt {
				got := 0
				for n := range of.n {
					call := s.QueueArmed(Waiter{ID: fmt.Sprint(of.team, of.platform, n), Team: of.team, Platform: of.platform}, fmt.Sprint(of.team, of.platform, n))
					call.Open()
					if len(call.turn) > 0 {
						got++
					}
					all = append(all, call)
				}
				if got != of.want {
					t.Errorf("team %s has %d concurrent calls to %s, want %d", of.team, got, of.platform, of.want)
				}
			}
			for _, call := range all {
				call.Done()
			}
			if s.armed.used != 0 || s.armed.opened != 0 || len(s.armed.byTeam)+len(s.armed.byPlatform) != 0 {
				t.Errorf("remaining: %+v", s.armed)
			}
		})
	}
}
