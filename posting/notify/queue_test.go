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
	refused = Result{Problem: "it answered with status 500"}
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
		"an event of now":                               {noon, true},
		"one that was recorded late":                    {noon.Add(-30 * time.Minute), true},
		"what happened before the notifier was created": {noon.Add(-2 * time.Hour), false},
		"an event from a fast clock":                    {noon.Add(time.Hour), true},
		"what happened a second before the creation":    {noon.Add(-time.Hour - time.Second), false},
		"the time of a condition may be the creation's": {noon.Add(-time.Hour), true},
		"an event soon after the notifier's creation":   {noon.Add(-time.Hour + time.Millisecond), true},
	} {
		t.Run(name, func(t *testing.T) {
			q := emptyQueue()
			if got := q.Offer(event("a", tc.at), noon); got != tc.want {
				t.Errorf("it was accepted: %v", got)
			}
			if q.Offer(event("a", tc.at), noon) {
				t.Error("it was accepted twice")
			}
		})
	}
	t.Run("an event of more than a day ago is too late", func(t *testing.T) {
		if emptyQueue().Offer(event("a", noon), noon.Add(MaxAge+time.Second)) {
			t.Error("it was accepted")
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
		t.Errorf("a receiver that fails has its pause: %v until %s", next, wake)
	}
	// The first one has failed twice, so that it waits longer than its receiver.
	n.notBefore = noon.Add(time.Hour)
	if got := drain(q, noon.Add(pauses[0]), always(success)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("sent %v, want other posts only, because later notifications about the same post wait", got)
	}
	if got := drain(q, noon.Add(time.Hour), always(success)); !slices.Equal(got, []string{"a", "a"}) {
		t.Errorf("sent %v", got)
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
		t.Errorf("after a day it has failed with its last error, not %+v", d)
	}
}

func TestRetryAfter(t *testing.T) {
	for name, tc := range map[string]struct{ requested, want time.Duration }{
		"the receiver sends a longer Retry-After": {20 * time.Minute, 20 * time.Minute},
		"a shorter one does not speed it up":      {time.Second, pauses[0]},
		"Retry-After is limited to a day":         {30 * time.Hour, maxRetryAfter},
	} {
		t.Run(name, func(t *testing.T) {
			q := emptyQueue()
			q.Offer(event("a", noon), noon)
			n, _ := q.Next(noon)
			q.Record(n, Result{Problem: "it answered with status 429", RetryAfter: tc.requested}, noon)
			if _, wake := q.Next(noon); !wake.Equal(noon.Add(tc.want)) {
				t.Errorf("it pauses for %s", wake.Sub(noon))
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
	for _, e := range all {
		q.Offer(e, noon)
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
	for _, e := range all {
		q.Offer(e, noon)
	}
	if sent += len(drain(q, noon, always(success))); sent != len(all) {
		t.Errorf("%d of %d were sent", sent, len(all))
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
		t.Error("its lifetime did not start again")
	}
	if n, _ := q.Next(later); n == nil || n.ID != e.ID("n") || n.Attempts != 1 {
		t.Errorf("it is sent with its id and the number of earlier attempts, not %+v", n)
	}
	drain(q, later, always(refused))
	if !q.Resend(e.ID("n"), later) {
		t.Error("a waiting notification cannot be sent immediately")
	}
	if n, _ := q.Next(later); n == nil {
		t.Error("it still waits")
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
		t.Errorf("late records would be missed: %s", s.ProcessedThrough)
	}
}
