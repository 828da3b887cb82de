// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// A team with a thousand files gets every second turn while another team has one.
func TestTeamsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		leave, err := q.acquire(t.Context(), "team-a", "first")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		enter := func(team string, number int) {
			leave, err := q.acquire(t.Context(), team, fmt.Sprint(team, number))
			if err != nil {
				t.Error(err)
			}
			order = append(order, team)
			leave()
		}
		for i := range 1000 {
			go enter("team-a", i)
			synctest.Wait()
		}
		for _, team := range []string{"team-b", "team-c"} {
			for i := range 2 {
				go enter(team, i)
				synctest.Wait()
			}
		}
		leave()
		synctest.Wait()
		if len(order) != 1004 {
			t.Fatalf("%d had a turn", len(order))
		}
		if want := strings.Fields("team-a team-b team-c team-a team-b team-c team-a"); !slices.Equal(order[:len(want)], want) {
			t.Errorf("the order is %v", order[:10])
		}
		if len(q.teams)+len(q.waiting)+len(q.working) != 0 || q.free != 1 {
			t.Errorf("remaining: %+v", q)
		}
	})
}

func TestSlotsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(2)
		first, _ := q.acquire(t.Context(), "team", "one")
		entered := map[string]bool{}
		leaves := map[string]func(){}
		for _, key := range []string{"one", "two", "three"} {
			go func() {
				leave, err := q.acquire(t.Context(), "team", key)
				if err != nil {
					t.Error(err)
				}
				entered[key], leaves[key] = true, leave
			}()
			synctest.Wait()
		}
		if !entered["two"] || entered["one"] || entered["three"] {
			t.Errorf("concurrent conversions: %v; want another file, but no file twice", entered)
		}
		leaves["two"]()
		synctest.Wait()
		if !entered["three"] || entered["one"] {
			t.Errorf("with the second place: %v", entered)
		}
		first()
		first() // a second call has no effect
		synctest.Wait()
		if !entered["one"] {
			t.Error("the same file waits for ever")
		}
		leaves["one"]()
		leaves["three"]()
		if q.free != 2 {
			t.Errorf("%d places are free", q.free)
		}
	})
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		leave, _ := q.acquire(t.Context(), "team-a", "one")
		ctx, cancel := context.WithCancel(t.Context())
		var failed error
		go func() { _, failed = q.acquire(ctx, "team-b", "two") }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !errors.Is(failed, context.Canceled) || len(q.teams) != 0 {
			t.Errorf("%v; still waiting: %v", failed, q.teams)
		}
		leave()
		if leave, err := q.acquire(t.Context(), "team-c", "three"); err != nil {
			t.Error(err)
		} else {
			leave()
		}
	})
}

func TestMemoryNextToImages(t *testing.T) {
	for name, tc := range map[string]struct {
		why    string
		places int
		memory int64
		want   bool
	}{
		"a pod of the chart":    {"768 MiB are for an image or a video", 1, 691 << 20, false},
		"a gigabyte":            {"half is the manager's own", 1, 1000 << 20, false},
		"a gigabyte and a half": {"the memory has room for one of each", 1, 1536 << 20, true},
		"two images":            {"the two images use it", 2, 2048 << 20, false},
		"no limit":              {"the machine is large enough, or no limit would help", 4, math.MaxInt64, true},
	} {
		if got := fitsBeside(tc.places, tc.memory, 320<<20); got != tc.want {
			t.Errorf("%s: %t: %s", name, got, tc.why)
		}
	}
}

func TestSlotsForMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		why        string
		processors int
		memory     int64
		want       int
	}{
		"a pod of the chart":   {"768 MiB are for one conversion", 8, 691 << 20, 1},
		"hardly any memory":    {"one is never too many", 8, 64 << 20, 1},
		"a gigabyte and more":  {"half belongs to the manager, and one conversion fits into the rest", 8, 1100 << 20, 1},
		"two gigabytes":        {"two fit", 8, 2048 << 20, 2},
		"no limit":             {"one for each processor", 2, math.MaxInt64, 2},
		"a large machine":      {"no conversion waits", 64, math.MaxInt64, maxPlaces},
		"memory for many":      {"one processor limits the slots", 1, 64 << 30, 1},
		"a processor in parts": {"GOMAXPROCS is never below one", 0, math.MaxInt64, 1},
	} {
		if got := places(tc.processors, tc.memory); got != tc.want {
			t.Errorf("%s: %d, want %d: %s", name, got, tc.want, tc.why)
		}
	}
}

func TestProcessLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		why                    string
		places                 int
		memory, others, wanted int64
	}{
		"a pod of the chart": {"768 MiB without a tenth and the manager's share, for one conversion", 1, 691 << 20, 0, 243 << 20},
		"a video beside it":  {"both reservations are subtracted", 1, 1536 << 20, 320 << 20, 768 << 20},
		"a small limit":      {"the manager cannot do with less", 1, 460 << 20, 0, baseMemory},
		"no limit":           {"without a limit, there is no share", 4, math.MaxInt64, 320 << 20, math.MaxInt64},
	} {
		if got := processLimit(tc.places, tc.memory, tc.others); got != tc.wanted {
			t.Errorf("%s: %d MiB, want %d: %s", name, got>>20, tc.wanted>>20, tc.why)
		}
	}
}
