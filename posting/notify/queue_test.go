// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
)

func notifierUID(name string) types.UID { return types.UID(name) }

var (
	refused = Result{Problem: "it responded with status 500"}
	success = Result{}
)

// emptyQueue is the queue of a Notifier that was created an hour before noon.
func emptyQueue() *Queue {
	return NewQueue(&v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{UID: "n", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}, noon)
}

func event(post string, at time.Time) Event {
	return Event{Type: v1alpha1.EventPostPosted, Kind: KindPost, Name: post, UID: types.UID(post), At: at}
}

// restart returns the queue of the next process, from the status of the previous one.
func restart(q *Queue, now time.Time) *Queue {
	n := &v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{UID: q.notifier, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	q.Save(&n.Status, now)
	return NewQueue(n, now)
}

// drain sends everything that is due, and returns the names.
func drain(q *Queue, now time.Time, result func(name string) Result) (sent []string) {
	for {
		n, _ := q.Next(now)
		if n == nil {
			return sent
		}
		sent = append(sent, n.Name)
		q.Record(n, result(n.Name), now)
	}
}

func always(r Result) func(string) Result { return func(string) Result { return r } }

func TestOffer(t *testing.T) {
	for name, tc := range map[string]struct {
		at   time.Time
		want bool
	}{
		"a present event":                               {noon, true},
		"an event that was recorded late":               {noon.Add(-30 * time.Minute), true},
		"an event before the notifier was created":      {noon.Add(-2 * time.Hour), false},
		"an event from a fast clock":                    {noon.Add(time.Hour), true},
		"an event a second before the creation":         {noon.Add(-time.Hour - time.Second), false},
		"the time of a condition may be the creation's": {noon.Add(-time.Hour), true},
		"an event soon after the notifier's creation":   {noon.Add(-time.Hour + time.Millisecond), true},
	} {
		t.Run(name, func(t *testing.T) {
			q := emptyQueue()
			if got := q.Offer(event("a", tc.at), noon); got != tc.want {
				t.Errorf("the event was accepted: %v", got)
			}
			if q.Offer(event("a", tc.at), noon) {
				t.Error("the event was accepted twice")
			}
		})
	}
	t.Run("an event of a day ago is listed, even if it cannot be sent any more", func(t *testing.T) {
		if !emptyQueue().Offer(event("a", noon), noon.Add(MaxAge)) {
			t.Error("the event was not accepted")
		}
	})
	t.Run("an event of more than a day ago is too late", func(t *testing.T) {
		if emptyQueue().Offer(event("a", noon), noon.Add(MaxAge+1)) {
			t.Error("the event was accepted")
		}
	})
	t.Run("a sent event is known, although its time was not processed yet", func(t *testing.T) {
		q := emptyQueue()
		q.Offer(event("a", noon), noon)
		drain(q, noon, always(success))
		var s v1alpha1.NotifierStatus
		q.Save(&s, noon)
		if q.Offer(event("a", noon), noon) {
			t.Error("the event was accepted again")
		}
		q.Save(&s, noon.Add(time.Hour))
		if len(q.settled) != 0 {
			t.Errorf("%d ids take memory, although their time was processed", len(q.settled))
		}
	})
}

func TestOrder(t *testing.T) {
	q := emptyQueue()
	q.Offer(event("b", noon.Add(2*time.Second)), noon)
	second := event("a", noon.Add(3*time.Second))
	second.Type = v1alpha1.EventPostFailed
	q.Offer(second, noon)
	q.Offer(event("a", noon.Add(time.Second)), noon)

	n, _ := q.Next(noon)
	if n.Name != "a" || n.Type != v1alpha1.EventPostPosted {
		t.Fatalf("the earliest event is sent first, not %s of %s", n.Type, n.Name)
	}
	q.Record(n, refused, noon)
	after := noon.Add(pauses[0] - time.Millisecond)
	if next, wake := q.Next(after); next != nil || !wake.Equal(noon.Add(pauses[0])) {
		t.Errorf("a failing receiver has its pause: %v until %s", next, wake)
	}
	// The first notification has failed twice, so it waits longer than its receiver.
	n.notBefore = noon.Add(time.Hour)
	if got := drain(q, noon.Add(pauses[0]), always(success)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("sent %v, want other posts only, because later notifications about the same post wait", got)
	}
	if got := drain(q, noon.Add(time.Hour), always(success)); !slices.Equal(got, []string{"a", "a"}) {
		t.Errorf("sent %v", got)
	}
}

// TestNext verifies the order of notifications that have already been tried.
func TestNext(t *testing.T) {
	due := noon.Add(time.Hour)
	for name, tc := range map[string]struct {
		// attempts holds the numbers of failed attempts for the posts p0, p1 and so on. With a negative number, the post
		// waits.
		attempts []int32
		want     string
	}{
		"the notification with the fewest attempts is first":               {[]int32{3, 1, 2}, "p1"},
		"among equals, the oldest is first":                                {[]int32{2, 2}, "p0"},
		"an untried notification is before all others":                     {[]int32{1, 0}, "p1"},
		"a waiting notification does not delay the others":                 {[]int32{-1, 2}, "p1"},
		"the queue is asked again when the first notification may be sent": {[]int32{-1, -2}, ""},
		"a due notification does not wait for a later one":                 {[]int32{2, -1}, "p0"},
		"an empty queue sends nothing, and sets no time":                   {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			q := emptyQueue()
			var wantWake time.Time
			for i, attempts := range tc.attempts {
				q.Offer(event(fmt.Sprint("p", i), noon.Add(time.Duration(i)*time.Second)), noon)
				q.pending[i].Attempts = max(attempts, -attempts)
				if attempts < 0 {
					q.pending[i].notBefore = due.Add(time.Duration(-attempts) * time.Minute)
					wantWake = due.Add(time.Minute)
				}
			}
			got := ""
			n, wake := q.Next(due)
			if n != nil {
				got, wantWake = n.Name, time.Time{}
			}
			if got != tc.want || !wake.Equal(wantWake) {
				t.Errorf("got %q and %s, want %q and %s", got, wake, tc.want, wantWake)
			}
		})
	}
}

func TestPauses(t *testing.T) {
	q := emptyQueue()
	q.Offer(event("a", noon), noon)
	var attempts []string
	now := noon
	for {
		q.Expire(now)
		n, wake := q.Next(now)
		if n == nil && wake.IsZero() {
			break
		}
		if n == nil {
			now = wake
			continue
		}
		attempts = append(attempts, now.Sub(noon).String())
		q.Record(n, refused, now)
	}
	if want := []string{"0s", "5s", "35s", "2m35s", "12m35s", "42m35s"}; len(attempts) < 40 || !slices.Equal(attempts[:6], want) {
		t.Errorf("%d attempts at %v, want growing pauses for a day", len(attempts), attempts[:min(len(attempts), 6)])
	}
	var s v1alpha1.NotifierStatus
	q.Save(&s, now)
	if d := s.Deliveries[0]; s.Pending != 0 || d.State != v1alpha1.DeliveryFailed || d.Message != refused.Problem {
		t.Errorf("after a day the notification has failed with its last error, not %+v", d)
	}
}

// TestPausesOfReceiver verifies that failures of different notifications add up, until one succeeds.
func TestPausesOfReceiver(t *testing.T) {
	q, now := emptyQueue(), noon
	for i, pause := range pauses[:3] {
		q.Offer(event(fmt.Sprint("p", i), noon.Add(time.Duration(i)*time.Second)), noon)
		n, _ := q.Next(now)
		q.Record(n, refused, now)
		if n, wake := q.Next(now); n != nil || !wake.Equal(now.Add(pause)) {
			t.Errorf("after failure %d, %v and %s; want a pause of %s", i+1, n, wake.Sub(now), pause)
		}
		now = now.Add(pause)
	}
	q.Offer(event("p3", noon.Add(time.Minute)), now)
	q.Offer(event("p4", noon.Add(time.Minute)), now)
	n, _ := q.Next(now)
	q.Record(n, success, now)
	n, _ = q.Next(now)
	if n == nil {
		t.Fatal("the receiver works again, and still has a pause")
	}
	q.Record(n, refused, now)
	if n, wake := q.Next(now); n != nil || !wake.Equal(now.Add(pauses[0])) {
		t.Errorf("after the first failure since then, %v and %s; want a pause of %s", n, wake.Sub(now), pauses[0])
	}
}

// TestPauseOfNotification verifies that a rejected notification waits longer, while others are delivered.
func TestPauseOfNotification(t *testing.T) {
	q := emptyQueue()
	q.Offer(event("bad", noon), noon)
	drain(q, noon, always(refused))
	now := noon.Add(pauses[0])
	drain(q, now, always(refused))
	q.Offer(event("good", noon), now)
	now = now.Add(pauses[1] - time.Second)
	if n, wake := q.Next(now); n != nil || !wake.Equal(now.Add(time.Second)) {
		t.Errorf("%v and %s, want a pause of the receiver", n, wake)
	}
	q.notBefore = now
	if got := drain(q, now, always(success)); !slices.Equal(got, []string{"good"}) {
		t.Errorf("sent %v, want the notification that was not rejected", got)
	}
	if n, wake := q.Next(now); n != nil || !wake.Equal(now.Add(time.Second)) {
		t.Errorf("%v and %s, want the second pause of the notification that was rejected twice", n, wake)
	}
}

func TestRetryAfter(t *testing.T) {
	for name, tc := range map[string]struct{ requested, want time.Duration }{
		"the receiver sends a longer Retry-After":          {20 * time.Minute, 20 * time.Minute},
		"a shorter Retry-After does not shorten the pause": {time.Second, pauses[0]},
		"Retry-After is limited to a day":                  {30 * time.Hour, maxRetryAfter},
	} {
		t.Run(name, func(t *testing.T) {
			q := emptyQueue()
			q.Offer(event("a", noon), noon)
			n, _ := q.Next(noon)
			q.Record(n, Result{Problem: "it responded with status 429", RetryAfter: tc.requested}, noon)
			if _, wake := q.Next(noon); !wake.Equal(noon.Add(tc.want)) {
				t.Errorf("the queue pauses for %s", wake.Sub(noon))
			}
		})
	}
}

func TestFailingNotificationDelaysOnlyItsPost(t *testing.T) {
	q := emptyQueue()
	for i := range 5 {
		q.Offer(event(fmt.Sprint("p", i), noon.Add(time.Duration(i)*time.Second)), noon)
	}
	bad := func(name string) Result {
		if name == "p0" {
			return refused
		}
		return success
	}
	drain(q, noon, bad)
	sent := drain(q, noon.Add(pauses[0]), bad)
	sent = append(sent, drain(q, noon.Add(2*pauses[0]), bad)...)
	for _, want := range []string{"p1", "p2", "p3", "p4"} {
		if !slices.Contains(sent, want) {
			t.Errorf("%s waits behind p0: %v", want, sent)
		}
	}
}

func TestRestart(t *testing.T) {
	offer := func(q *Queue, now time.Time, names ...string) {
		for i, name := range names {
			q.Offer(event(name, noon.Add(time.Duration(i)*time.Second)), now)
		}
	}
	t.Run("a recorded notification is not sent again", func(t *testing.T) {
		q := emptyQueue()
		offer(q, noon, "a", "b")
		drain(q, noon, always(success))
		q = restart(q, noon)
		offer(q, noon, "a", "b", "c")
		if got := drain(q, noon, always(success)); !slices.Equal(got, []string{"c"}) {
			t.Errorf("sent %v", got)
		}
	})
	t.Run("a waiting notification is sent even if its post was deleted", func(t *testing.T) {
		q := emptyQueue()
		offer(q, noon, "a")
		drain(q, noon, always(refused))
		later := noon.Add(time.Hour)
		if got := drain(restart(q, later), later, always(success)); !slices.Equal(got, []string{"a"}) {
			t.Errorf("sent %v", got)
		}
	})
	t.Run("an unrecorded notification is derived again", func(t *testing.T) {
		q := emptyQueue()
		n := &v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{UID: "n"}}
		q.Save(&n.Status, noon) // the process ends after it has sent a and b, and before the next Save
		offer(q, noon, "a", "b")
		drain(q, noon, always(success))
		q = NewQueue(n, noon)
		offer(q, noon, "a", "b")
		if got := drain(q, noon, always(success)); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("sent %v", got)
		}
	})
	t.Run("after an outage of more than a day, earlier notifications have an hour", func(t *testing.T) {
		q := emptyQueue()
		offer(q, noon, "a")
		drain(q, noon, always(refused))
		later := noon.Add(3 * MaxAge)
		q = restart(q, later)
		if expired := q.Expire(later); len(expired) != 0 {
			t.Errorf("%d expired", len(expired))
		}
		if expired := q.Expire(later.Add(resumeFor)); len(expired) != 1 {
			t.Errorf("%d expired after an hour", len(expired))
		}
	})
	t.Run("an untried event loses nothing", func(t *testing.T) {
		q := emptyQueue()
		offer(q, noon, "a")
		later := noon.Add(3 * MaxAge)
		if expired := restart(q, later).Expire(later); len(expired) != 1 {
			t.Errorf("%d were given up", len(expired))
		}
	})
	t.Run("a tried event has the rest of its day", func(t *testing.T) {
		q := emptyQueue()
		offer(q, noon, "a")
		drain(q, noon, always(refused))
		if expired := restart(q, noon).Expire(noon.Add(MaxAge - 1)); len(expired) != 0 {
			t.Errorf("%d were given up", len(expired))
		}
	})
	t.Run("a processed event is not sent again, although it is no longer listed", func(t *testing.T) {
		q := emptyQueue()
		var names []string
		for i := range v1alpha1.MaxFinishedDeliveries + 1 {
			names = append(names, fmt.Sprintf("p%03d", i))
		}
		offer(q, noon, names...)
		drain(q, noon, always(success))
		now := noon.Add(time.Hour)
		q = restart(q, now)
		offer(q, now, names...)
		if got := drain(q, now, always(success)); len(got) != 0 {
			t.Errorf("sent %v", got)
		}
	})
	t.Run("the list shows the same", func(t *testing.T) {
		q := emptyQueue()
		offer(q, noon, "a", "b")
		n, _ := q.Next(noon)
		q.Record(n, refused, noon)
		var before, after v1alpha1.NotifierStatus
		q.Save(&before, noon)
		q = NewQueue(&v1alpha1.Notifier{Status: *before.DeepCopy()}, noon)
		before.DeepCopyInto(&after)
		q.Save(&after, noon)
		if diff := cmp.Diff(before.Deliveries, after.Deliveries); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
		if b, a := before.Deliveries[0], before.Deliveries[1]; b.LastAttemptAt != nil || !a.LastAttemptAt.Equal(v1alpha1.NewTimePtr(noon)) {
			t.Errorf("%s was tried at %s, and %s at %s; want only the first at noon", a.Name, a.LastAttemptAt, b.Name, b.LastAttemptAt)
		}
	})
	t.Run("notifications beyond the status's limit are derived again", func(t *testing.T) {
		q := emptyQueue()
		var names []string
		for i := range 300 {
			names = append(names, fmt.Sprintf("p%03d", i))
		}
		offer(q, noon, names...)
		now := noon.Add(time.Hour)
		q = restart(q, now)
		if n, _ := q.Pending(); n != v1alpha1.MaxPendingDeliveries {
			t.Errorf("%d are stored", n)
		}
		offer(q, now, names...)
		if got := drain(q, now, always(success)); !slices.Equal(got, names) {
			t.Errorf("sent %d of 300: %s", len(got), cmp.Diff(names, got))
		}
	})
}

func TestBoundedMemory(t *testing.T) {
	q := emptyQueue()
	all := make([]Event, maxQueued+1000)
	for i := range all {
		all[i] = event(fmt.Sprintf("p%05d", i), noon.Add(time.Duration(i)*time.Millisecond))
	}
	for i, e := range all {
		if got := q.Offer(e, noon); got != (i < maxQueued) {
			t.Fatalf("event %d was accepted: %t", i, got)
		}
	}
	if n, _ := q.Pending(); n != maxQueued {
		t.Fatalf("%d are in memory", n)
	}
	var s v1alpha1.NotifierStatus
	q.Save(&s, noon.Add(time.Hour))
	if !q.Through().Before(all[v1alpha1.MaxPendingDeliveries].At) {
		t.Errorf("after a restart, the events from %s on would be missing", q.Through())
	}
	if q.HasSpace() {
		t.Error("a full queue has space")
	}
	sent := 0
	for ; sent < maxQueued/2; sent++ {
		n, _ := q.Next(noon)
		q.Record(n, success, noon)
	}
	if !q.HasSpace() {
		t.Fatal("a half-empty queue has no space")
	}
	if q.HasSpace() {
		t.Error("each event must be offered once")
	}
	for _, e := range all {
		q.Offer(e, noon)
	}
	if sent += len(drain(q, noon, always(success))); sent != len(all) {
		t.Errorf("%d of %d were sent", sent, len(all))
	}
}

// TestSaveProcessed verifies which events are derived again after a restart, regardless of the order of their arrival.
func TestSaveProcessed(t *testing.T) {
	seen := noon.Add(time.Hour)
	for name, tc := range map[string]struct {
		pending int
		// late is the time of an event that arrives after the others; zero for none.
		late, want time.Time
	}{
		"events that may still become visible":    {0, time.Time{}, seen.Add(-settlingTime)},
		"events that the status does not list":    {v1alpha1.MaxPendingDeliveries, time.Time{}, seen.Add(-settlingTime)},
		"events that the status has no space for": {v1alpha1.MaxPendingDeliveries + 1, time.Time{}, noon.Add(v1alpha1.MaxPendingDeliveries*time.Millisecond - time.Millisecond)},
		"events that the memory has no space for": {maxQueued, noon.Add(-30 * time.Minute), noon.Add(-30*time.Minute - time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			q := emptyQueue()
			for i := range tc.pending {
				q.Offer(event(fmt.Sprintf("p%05d", i), noon.Add(time.Duration(i)*time.Millisecond)), noon)
			}
			if !tc.late.IsZero() {
				q.Offer(event("late", tc.late), noon)
			}
			var s v1alpha1.NotifierStatus
			q.Save(&s, seen)
			q.Save(&s, seen)
			if !s.ProcessedThrough.Time.Equal(tc.want) || !q.Through().Equal(tc.want) {
				t.Errorf("processed through %s and %s, want %s", s.ProcessedThrough, q.Through(), tc.want)
			}
			if got := min(tc.pending, v1alpha1.MaxPendingDeliveries); len(s.Deliveries) != got {
				t.Errorf("%d are listed, want %d", len(s.Deliveries), got)
			}
		})
	}
}

func TestResend(t *testing.T) {
	q := emptyQueue()
	e := event("a", noon)
	q.Offer(e, noon)
	drain(q, noon, always(success))
	later := noon.Add(3 * MaxAge)
	q = restart(q, later)
	if q.Resend("msg_unknown", later) {
		t.Error("an unknown id can be sent again")
	}
	if !q.Resend(e.ID("n"), later) {
		t.Fatal("a delivered notification cannot be sent again")
	}
	if expired := q.Expire(later); len(expired) > 0 {
		t.Error("the lifetime of the notification did not start again")
	}
	if n, _ := q.Next(later); n == nil || n.ID != e.ID("n") || n.Attempts != 1 {
		t.Errorf("the event is sent with its id and the number of earlier attempts, not %+v", n)
	}
	drain(q, later, always(refused))
	if !q.Resend(e.ID("n"), later) {
		t.Error("a waiting notification cannot be sent immediately")
	}
	if n, _ := q.Next(later); n == nil {
		t.Error("the event still waits")
	}
}

// TestResendUntried verifies that a notification that expired before its first attempt can be sent.
func TestResendUntried(t *testing.T) {
	q := emptyQueue()
	e := event("a", noon)
	q.Offer(e, noon)
	later := noon.Add(MaxAge)
	q.Expire(later)
	if !q.Resend(e.ID("n"), later) {
		t.Fatal("the event is unknown")
	}
	if expired := q.Expire(later.Add(resumeFor - 1)); len(expired) > 0 {
		t.Error("the event has expired again")
	}
	var s v1alpha1.NotifierStatus
	q.Save(&s, later)
	if len(s.Deliveries) != 1 || s.Deliveries[0].State != v1alpha1.DeliveryPending {
		t.Errorf("the list shows %+v, want a waiting notification", s.Deliveries)
	}
}

func TestDeliveries(t *testing.T) {
	q := emptyQueue()
	for i := range 60 {
		q.Offer(event(fmt.Sprintf("p%02d", i), noon.Add(time.Duration(i)*time.Second)), noon)
	}
	drain(q, noon, always(success))
	q.Offer(event("waits", noon.Add(time.Hour)), noon)
	var s v1alpha1.NotifierStatus
	q.Save(&s, noon.Add(2*time.Hour))
	if got := len(s.Deliveries); got != 1+v1alpha1.MaxFinishedDeliveries {
		t.Fatalf("%d are recorded", got)
	}
	var names []string
	for _, d := range s.Deliveries[:3] {
		names = append(names, d.Name+" "+string(d.State))
	}
	if diff := cmp.Diff([]string{"waits pending", "p59 delivered", "p58 delivered"}, names); diff != "" {
		t.Error(diff)
	}
	if !s.ProcessedThrough.Equal(v1alpha1.NewTimePtr(noon.Add(2*time.Hour - settlingTime))) {
		t.Errorf("the queue would miss late records: %s", s.ProcessedThrough)
	}
}
