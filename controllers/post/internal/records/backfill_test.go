// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/test/must"
)

// recordsOf returns the records of posts in the order of their keys, and counts in read how many were read.
func recordsOf(posts map[string]time.Time, read *int) iter.Seq2[archive.Entry, error] {
	names := make([]string, 0, len(posts))
	for name := range posts {
		names = append(names, name)
	}
	slices.SortFunc(names, archive.CompareKeys)
	return func(yield func(archive.Entry, error) bool) {
		for _, name := range names {
			*read++
			if !yield(archive.Entry{Post: name, At: posts[name]}, nil) {
				return
			}
		}
	}
}

// TestComparison uses names that are prefixes of each other. Some have a record, and some only an outdated one. The
// expected result comes from a map.
func TestComparison(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	random := rand.New(rand.NewPCG(17, 4))
	parts := []string{"a", "b", "-a", "-b", ".a", ".json", ".k", "0", "a.json", "-"}
	for round := range 300 {
		posts, records := map[string]bool{}, map[string]time.Time{}
		for range random.IntN(60) {
			name := "p"
			for range random.IntN(6) {
				name += parts[random.IntN(len(parts))]
			}
			switch random.IntN(4) {
			case 0:
				records[name] = at.Add(-time.Hour) // the record of an earlier object
			case 1:
				posts[name] = true
				continue
			default:
				records[name] = at
			}
			if random.IntN(3) > 0 {
				posts[name] = true
			}
		}
		var names, want, got []string
		for name := range posts {
			names = append(names, name)
			if kept, ok := records[name]; !ok || kept.Before(at) {
				want = append(want, name)
			}
		}
		slices.Sort(names)
		slices.Sort(want)
		c := compareWith(recordsOf(records, new(int)), func(post string) { got = append(got, post) })
		for _, name := range names {
			must.Succeed(t, c.add(finishedPost{name, at}))
		}
		must.Succeed(t, c.finish())
		c.stop()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: lacking a record are %q, want %q; posts %q", round, got, want, names)
		}
	}
}

// TestComparisonStoresNoList checks that records are read as posts arrive, and are not kept.
func TestComparisonStoresNoList(t *testing.T) {
	const many, room = 100_000, 4
	at, read := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), 0
	records := map[string]time.Time{}
	names := []string{"post"}
	for i := range many {
		names = append(names, fmt.Sprintf("post-%06d", i))
	}
	for _, name := range names {
		records[name] = at
	}
	c := compareWith(recordsOf(records, &read), func(post string) { t.Fatalf("%s has a record", post) })
	defer c.stop()
	for i, name := range names {
		must.Succeed(t, c.add(finishedPost{name, at}))
		if ahead := read - i; ahead > room || len(c.pending) > room {
			t.Fatalf("after %d posts, %d records were read, and %d posts are buffered", i, read, len(c.pending))
		}
	}
	if err := c.finish(); err != nil || read != len(names) {
		t.Fatalf("%d of %d records read, %v", read, len(names), err)
	}
}

// TestComparisonEndsWithTheStore interrupts a list of records: posts with unknown records are not reported as missing
// one.
func TestComparisonEndsWithTheStore(t *testing.T) {
	away := errors.New("the store is unavailable")
	c := compareWith(func(yield func(archive.Entry, error) bool) { yield(archive.Entry{}, away) }, func(post string) { t.Errorf("%s is listed without a record", post) })
	defer c.stop()
	err := c.add(finishedPost{"a", time.Time{}})
	if err = errors.Join(err, c.add(finishedPost{"b", time.Time{}}), c.finish()); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}

// TestBackfill: backfilling a Team costs a list of all its finished posts and of all its records.
func TestBackfill(t *testing.T) {
	of := func(owns metav1.ConditionStatus) *v1alpha1.Team {
		return &v1alpha1.Team{
			ObjectMeta: metav1.ObjectMeta{Name: "acme"},
			Status:     v1alpha1.TeamStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: owns}}},
		}
	}
	owning, refused := of(metav1.ConditionTrue), of(metav1.ConditionFalse)
	for _, tc := range []struct {
		reason string
		happen func(*Archiver)
		want   int
	}{
		{"the Team acquires its namespace", func(a *Archiver) {
			a.Backfill().Update(t.Context(), event.UpdateEvent{ObjectOld: refused, ObjectNew: owning}, nil)
		}, 1},
		{"the Team acquired it while the watch was interrupted", func(a *Archiver) {
			a.Backfill().Create(t.Context(), event.CreateEvent{Object: owning}, nil)
		}, 1},
		{"the records were backfilled before", func(a *Archiver) {
			a.Backfill().Update(t.Context(), event.UpdateEvent{ObjectOld: owning, ObjectNew: refused}, nil)
		}, 0},
		{"the records are deleted with the Team", func(a *Archiver) {
			a.Backfill().Delete(t.Context(), event.DeleteEvent{Object: owning}, nil)
		}, 0},
	} {
		o := &Options{Clock: clock.RealClock{}, Records: someArchive(t)}
		a := NewArchiver(o, New(o))
		tc.happen(a)
		if got := a.teamQueue.Len(); got != tc.want {
			t.Errorf("%d teams are caught up, want %d: %s", got, tc.want, tc.reason)
		}
		a.queue.ShutDown()
		a.teamQueue.ShutDown()
	}
}
