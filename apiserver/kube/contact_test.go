// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestContact verifies which responses from the Kubernetes API count as contact: successful ones, at the time of their
// request.
func TestContact(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1_000_000, 0)
	clock := clocktesting.NewFakePassiveClock(begun)
	away := errors.New("away")
	var failing error
	source := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			clock.SetTime(clock.Now().Add(5 * time.Second)) // a response takes some time
			return &v1alpha1.APIKeyList{}, failing
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			if options.TimeoutSeconds == nil || *options.TimeoutSeconds != 90 {
				t.Errorf("a watch is to last %v seconds, want 90", options.TimeoutSeconds)
			}
			return apiwatch.NewFake(), failing
		},
	}
	c := &contact{clock: clock}
	noted := c.observe(source)
	list := func() error { _, err := noted.ListWithContext(t.Context(), metav1.ListOptions{}); return err }
	watch := func() error {
		events, err := noted.WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64(600))})
		if err == nil {
			events.Stop()
		}
		return err
	}
	for _, tt := range []struct {
		reason  string
		ask     func() error
		failing error
		want    time.Time
	}{
		{"a failed list is not evidence", list, away, time.Time{}},
		{"a successful list is as recent as its request", list, nil, begun.Add(time.Minute + 5*time.Second)},
		{"a failed watch is not evidence", watch, away, begun.Add(time.Minute + 5*time.Second)},
		{"a resumed watch has not missed an event", watch, nil, begun.Add(3*time.Minute + 10*time.Second)},
	} {
		failing = tt.failing
		if err := tt.ask(); !errors.Is(err, tt.failing) {
			t.Errorf("%s: %v", tt.reason, err)
		}
		if got := c.LastContact(); !got.Equal(tt.want) {
			t.Errorf("%s: last contact at %s, want %s", tt.reason, got, tt.want)
		}
		clock.SetTime(clock.Now().Add(time.Minute))
	}
}

// TestDenied verifies that only a successful response ends a denial.
func TestDenied(t *testing.T) {
	t.Parallel()
	var failing error
	c := &contact{clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))}
	source := c.observe(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1alpha1.APIKeyList{}, failing
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) {
			return apiwatch.NewFake(), failing
		},
	})
	for _, tt := range []struct {
		reason  string
		failing error
		want    bool
	}{
		{"an unavailable API is not a denial", errors.New("away"), false},
		{"the Role was deleted", apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("apikeys").GroupResource(), "", nil), true},
		{"an unavailable API is not evidence that the Role is back", errors.New("away"), true},
		{"the Role is back", nil, false},
	} {
		failing = tt.failing
		_, _ = source.ListWithContext(t.Context(), metav1.ListOptions{})
		if got := c.denied.Load(); got != tt.want {
			t.Errorf("%s: denied is %v", tt.reason, got)
		}
	}
}

// TestSilentWatch verifies that a watch ends even if the server does not end it.
func TestSilentWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked context.Context
		source := &cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, nil },
			WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (apiwatch.Interface, error) {
				asked = ctx //nolint:fatcontext // the test inspects its end
				return apiwatch.NewFake(), nil
			},
		}
		begun := time.Now()
		events, err := (&contact{clock: clocktesting.NewFakePassiveClock(begun)}).observe(source).WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		<-asked.Done()
		if took := time.Since(begun); took != cutAfter {
			t.Errorf("cut after %s, want %s", took, cutAfter)
		}
		events.Stop()
	})
}

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
		"Changed":   {"the change is reported once", func() { f.changed(one) }, 1},
		"Often":     {"unread changes are reported once", func() { f.changed(one); f.changed(one); f.changed(one) }, 1},
		"OtherTeam": {"the namespace is part of the key", func() { f.changed(other) }, 0},
		"OtherPost": {"the name is part of the key", func() { f.changed(postKey{"team-a", "p2"}) }, 0},
		"Listed":    {"any post may have changed while it was not watched", f.allChanged, 1},
	} {
		tc.do()
		if a, b := told(changes), told(second); a != tc.want || b != tc.want {
			t.Errorf("%s: %s: got %d and %d events, want %d", name, tc.reason, a, b, tc.want)
		}
	}
	stop()
	stop() // a second call has no effect
	f.changed(one)
	if told(changes) != 0 || told(second) != 1 {
		t.Error("one subscriber has left, and the other must remain")
	}
	stopSecond()
	if f.count.Load() != 0 || len(f.of) != 0 {
		t.Errorf("all subscribers have left: %d counted, %v in memory", f.count.Load(), f.of)
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
		t.Error("a subscription exceeds the limit")
	}
	stops[7]()
	if _, _, ok := f.subscribe(postKey{"team-a", "p0"}); !ok {
		t.Error("a subscriber has left, so one more fits")
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
		t.Errorf("%d counted, %v in memory", f.count.Load(), f.of)
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
