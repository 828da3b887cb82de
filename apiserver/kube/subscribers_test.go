// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"sync"
	"testing"
)

func TestFollowers(t *testing.T) {
	t.Parallel()
	f := newSubscribers()
	one, other := postKey{"team-a", "p1"}, postKey{"team-b", "p1"}
	f.changed(one) // no subscribers
	changes, stop, ok := f.subscribe(one)
	if !ok {
		t.Fatal("one is too many")
	}
	second, stopSecond, _ := f.subscribe(one)
	told := func(c <-chan struct{}) int {
		for n := 0; ; n++ {
			select {
			case <-c:
			default:
				return n
			}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		do     func()
		want   int
	}{
		"Changed":   {"it is told once", func() { f.changed(one) }, 1},
		"Often":     {"what nobody has received yet is told once", func() { f.changed(one); f.changed(one); f.changed(one) }, 1},
		"OtherTeam": {"the same name in another namespace is another post", func() { f.changed(other) }, 0},
		"OtherPost": {"so is another name", func() { f.changed(postKey{"team-a", "p2"}) }, 0},
		"Listed":    {"what was not watched may have changed anything", f.allChanged, 1},
	} {
		tc.do()
		if a, b := told(changes), told(second); a != tc.want || b != tc.want {
			t.Errorf("%s: %s: told %d and %d times, want %d", name, tc.reason, a, b, tc.want)
		}
	}
	stop()
	stop() // a second call has no effect
	f.changed(one)
	if told(changes) != 0 || told(second) != 1 {
		t.Error("one has left, the other has not")
	}
	stopSecond()
	if f.count.Load() != 0 || len(f.of) != 0 {
		t.Errorf("all have left: %d are counted, %v is kept", f.count.Load(), f.of)
	}
}

func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	f := newSubscribers()
	var stops []func()
	for i := range maxSubscribers {
		_, stop, ok := f.subscribe(postKey{"team-a", fmt.Sprint("p", i)})
		if !ok {
			t.Fatalf("%d are too many", i)
		}
		stops = append(stops, stop)
	}
	if _, _, ok := f.subscribe(postKey{"team-a", "p0"}); ok {
		t.Error("one more than there may be")
	}
	stops[7]()
	if _, _, ok := f.subscribe(postKey{"team-a", "p0"}); !ok {
		t.Error("one has left, so that there is room")
	}
}

// TestFollowersRace subscribes, unsubscribes and signals concurrently. Remaining subscribers receive the last change.
func TestFollowersRace(t *testing.T) {
	t.Parallel()
	f := newSubscribers()
	post := postKey{"team-a", "p"}
	var changed, coming sync.WaitGroup
	last := make(chan struct{})
	for range 20 {
		coming.Go(func() {
			for range 50 {
				changes, stop, _ := f.subscribe(post)
				select {
				case <-changes:
				default:
				}
				stop()
			}
			changes, stop, _ := f.subscribe(post)
			defer stop()
			changed.Done()
			<-last
			<-changes
		})
		changed.Add(1)
		changed.Go(func() {
			for range 100 {
				f.changed(post)
			}
		})
	}
	changed.Wait()
	f.changed(post)
	close(last)
	coming.Wait()
	if f.count.Load() != 0 || len(f.of) != 0 {
		t.Errorf("%d are counted, %v is kept", f.count.Load(), f.of)
	}
}

// BenchmarkNobodyFollows measures the cost of a watch event without subscribers.
func BenchmarkNobodyFollows(b *testing.B) {
	f := newSubscribers()
	post := postKey{"team-a", "p"}
	b.ReportAllocs()
	for b.Loop() {
		f.changed(post)
	}
}
