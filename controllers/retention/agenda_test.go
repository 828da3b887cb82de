// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/herald-social/herald/posting/retention"
)

// TestAgenda finishes posts continuously for days, and checks how late they are archived and how often they are read.
// Reading a day returns the posts that the API server has at that moment.
func TestAgenda(t *testing.T) {
	start := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason    string
		inCluster time.Duration
		// stored is the delay between the end of a post and the write of its status.
		stored time.Duration
		reads  int
	}{
		"seven days":           {"each of eleven days is read once, after it has ended", 7 * 24 * time.Hour, 0, 11},
		"seven days, and late": {"a result may be recorded a minute late", 7 * 24 * time.Hour, time.Minute, 11},
		"two days":             {"shorter retentions read each day once too", 48 * time.Hour, 0, 6},
		"twelve hours":         {"the current day is read again, before new posts are due", 12 * time.Hour, 0, 11},
		"an hour":              {"sweeps are about an hour apart", time.Hour, 4 * time.Minute, 82},
		"six minutes":          {"sweeps are about a minute apart", 6 * time.Minute, time.Minute, 4400},
		"at once":              {"each sweep reads the posts since the last one", 0, 0, 8700},
		"at once, and late":    {"the last posts of a day are archived on the next day, not in the review of all days", 0, time.Minute, 8800},
		"a minute, and late":   {"late results do not add reads", time.Minute, 4 * time.Minute, 8800},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgenda("acme", retention.Times{InCluster: tc.inCluster})
			type stored struct {
				entry
				seen time.Time
			}
			there := map[string]stored{}
			reads, left, created := 0, 0, 0
			// A post cannot leave before it is stored, and the next sweep sees it.
			most := max(tc.stored-tc.inCluster, 0) + 2*sweepEvery
			for now := start; now.Before(start.Add(tc.inCluster + 72*time.Hour)); now = now.Add(sweepEvery) {
				if created%10 == 0 {
					// Posts finish between two sweeps, so that each day ends with a sweep.
					post, finished := fmt.Sprintf("p%d", created), now.Add(-time.Second)
					there[post] = stored{entry{post, finished.Add(tc.inCluster)}, finished.Add(tc.stored)}
				}
				created++
				if days := a.daysToRead(now); len(days) > 0 {
					reads += len(days)
					var found []entry
					for _, p := range there {
						if finished := p.at.Add(-tc.inCluster); slices.Contains(days, dayOf(finished)) && !now.Before(p.seen) {
							found = append(found, p.entry)
						}
					}
					a.merge(found, now)
				}
				for _, e := range a.popDue(now, 1000) {
					if late := now.Sub(e.at); late < 0 || late > most {
						t.Fatalf("%s was archived %v after its time", e.name, late)
					}
					delete(there, e.name)
					left++
				}
			}
			for _, p := range there {
				if last := start.Add(tc.inCluster + 72*time.Hour); last.Sub(p.at) > most {
					t.Fatalf("%s is still there, %v after its time", p.name, last.Sub(p.at))
				}
			}
			if left == 0 || reads > tc.reads {
				t.Errorf("%s: %d posts were archived after %d reads, want at most %d", tc.reason, left, reads, tc.reads)
			}
			t.Logf("%d posts were archived after %d reads", left, reads)
		})
	}
}

func TestNext(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	a := newAgenda("acme", retention.Times{})
	a.add([]entry{{"c", noon.Add(time.Minute)}, {"b", noon}, {"a", noon.Add(-time.Minute)}})
	a.add([]entry{{"b", noon.Add(time.Hour)}})
	if late := a.late(noon); late != time.Minute {
		t.Errorf("the first one has been due for a minute, got %v", late)
	}
	for _, want := range []string{"[a]", "[b]", "[]"} {
		var names []string
		for _, e := range a.popDue(noon, 1) {
			names = append(names, e.name)
		}
		if got := fmt.Sprint(names); got != want {
			t.Errorf("got %s, want %s: the oldest go first, each once, and no more at a time", got, want)
		}
	}
	if late := a.late(noon); late != 0 {
		t.Errorf("no post is due, got %v", late)
	}
}
