// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestFinalPace(t *testing.T) {
	const extra = 80
	for name, tt := range map[string]struct {
		reason string
		// idleAfter is how long posts wait.
		idleAfter time.Duration
		events    int
		// burst events are emitted at once, the next one after firstLate, and the last one after last.
		burst           int
		firstLate, last time.Duration
	}{
		"no posts wait":                {"the limits of final events apply", 0, allFinalBurst + extra, allFinalBurst, time.Second / allFinalPerSecond, extra * time.Second / allFinalPerSecond},
		"posts wait":                   {"events leave the API server to the posts", time.Hour, allFinalBurstBusy + extra, allFinalBurstBusy, time.Second / allFinalPerSecondBusy, extra * time.Second / allFinalPerSecondBusy},
		"posts wait for two seconds":   {"the others follow at the usual rate", 2 * time.Second, allFinalBurstBusy + 20 + extra, allFinalBurstBusy, time.Second / allFinalPerSecondBusy, 2*time.Second + extra*time.Second/allFinalPerSecond},
		"too many events wait":         {"the backlog is limited", time.Hour, allFinalBurstBusy + maxHeldBack + 1 + extra, allFinalBurstBusy, time.Second / allFinalPerSecondBusy, extra*time.Second/allFinalPerSecond + (maxHeldBack+1)*time.Second/allFinalPerSecondBusy},
		"fewer events than the limits": {"they are emitted at once", time.Hour, allFinalBurstBusy, allFinalBurstBusy, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				pace := newFinalPace(clock.RealClock{}, func() bool { return time.Since(began) < tt.idleAfter })
				var mu sync.Mutex
				var order []int
				var at []time.Duration
				var emitted sync.WaitGroup
				emitted.Add(tt.events)
				for n := range tt.events {
					pace.add("team", func() {
						defer emitted.Done()
						mu.Lock()
						defer mu.Unlock()
						order, at = append(order, n), append(at, time.Since(began))
					})
				}
				emitted.Wait()
				for n := range order {
					if order[n] != n {
						t.Fatalf("event %d is emitted as number %d", order[n], n)
					}
				}
				if at[tt.burst-1] != 0 || tt.events > tt.burst && at[tt.burst] != tt.firstLate || at[tt.events-1] != tt.last {
					t.Errorf("%s: events %d, %d and %d are emitted after %s, %s and %s, want 0s, %s and %s", tt.reason, tt.burst, tt.burst+1, tt.events,
						at[tt.burst-1], at[min(tt.burst, tt.events-1)], at[tt.events-1], tt.firstLate, tt.last)
				}
			})
		})
	}
}

// TestFinalPaceOfTeams checks that a team's burst does not delay another team's events while posts wait.
func TestFinalPaceOfTeams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		pace := newFinalPace(clock.RealClock{}, func() bool { return true })
		var emitted sync.WaitGroup
		emitted.Add(allFinalBurstBusy + 1000)
		for range allFinalBurstBusy + 1000 {
			pace.add("noisy", emitted.Done)
		}
		at := make(chan time.Duration, 2)
		for range cap(at) {
			pace.add("quiet", func() { at <- time.Since(began) })
		}
		// The team's first event follows one of the noisy team, and its second one another.
		for _, want := range []time.Duration{2 * time.Second / allFinalPerSecondBusy, 4 * time.Second / allFinalPerSecondBusy} {
			if got := <-at; got != want {
				t.Errorf("the quiet team's event is emitted after %s, want %s", got, want)
			}
		}
		emitted.Wait()
	})
}
