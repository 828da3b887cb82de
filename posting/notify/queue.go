// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
)

const (
	// MaxAge is the time after which an undelivered notification has failed.
	MaxAge = 24 * time.Hour
	// settlingTime is the longest delay between an event and its appearance in a status: recording a result may take a
	// minute, and the clocks of two managers may differ. A restarted manager derives the events of this period again.
	settlingTime = 5 * time.Minute
	// maxQueued limits the notifications in memory, about 1 MiB. Later events are derived again when there is space.
	maxQueued = 4096
	// resumeFor is the minimum time for attempts after a restart or a request to resend a notification.
	resumeFor = time.Hour
)

// pauses are the delays after successive failed attempts; the last one repeats.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute}

// maxRetryAfter limits the pause that a receiver requests.
const maxRetryAfter = time.Hour

func pauseAfter(failures int) time.Duration { return pauses[min(max(failures, 1), len(pauses))-1] }

// Notification is a pending notification.
type Notification struct {
	Event

	ID       string
	Attempts int32
	// LastAttempt is the time of the last attempt, and Problem its error.
	LastAttempt time.Time
	Problem     string

	notBefore, until time.Time
}

// Result is the result of an attempt. The zero value is a success.
type Result struct {
	// Problem explains a failure to the user. It is empty after a success.
	Problem string
	// Gone is true if the receiver requests no further notifications.
	Gone bool
	// RetryAfter is the pause that the receiver requests.
	RetryAfter time.Duration
}

// Queue holds the notifications of one Notifier. It is not safe for concurrent use.
type Queue struct {
	notifier types.UID
	// pending is sorted by time. finished holds the latest finished ones, newest first.
	pending  []*Notification
	finished []v1alpha1.NotifierDelivery
	// settled contains the ids of finished notifications later than through, with their times, because they may be
	// derived again.
	settled map[string]time.Time
	// through is the time up to which all events were processed at the last Save. overflow is the time of the earliest
	// event that did not fit, or zero.
	through, overflow time.Time
	// failures counts failed attempts since the last success, and notBefore is the end of the pause after the last one.
	failures  int
	notBefore time.Time
}

// NewQueue returns a queue that continues from the Notifier's status. If the status is empty, it starts at the
// Notifier's creation. Kubernetes truncates this time and the times of conditions to seconds, so it includes the whole
// second.
func NewQueue(n *v1alpha1.Notifier, now time.Time) *Queue {
	q := &Queue{notifier: n.UID, through: n.CreationTimestamp.Add(-time.Millisecond), settled: map[string]time.Time{}}
	if t := n.Status.ProcessedThrough; t != nil && t.After(q.through) {
		q.through = t.Time
	}
	for i := range n.Status.Deliveries {
		d := &n.Status.Deliveries[i]
		if d.State != v1alpha1.DeliveryPending {
			q.finished = append(q.finished, *d)
			q.settled[d.ID] = d.OccurredAt.Time
			continue
		}
		item := &Notification{
			Event: Event{Type: d.Event, Kind: d.Kind, Name: d.Name, UID: types.UID(d.UID), At: d.OccurredAt.Time},
			ID:    d.ID, Attempts: d.Attempts, Problem: d.Message,
		}
		if d.LastAttemptAt != nil {
			item.LastAttempt = d.LastAttemptAt.Time
		}
		q.insert(item, now)
	}
	return q
}

// Through returns the time up to which all events were processed. The caller offers later events.
func (q *Queue) Through() time.Time { return q.through }

// Pending returns the number of pending notifications, and the time of the oldest.
func (q *Queue) Pending() (n int, oldest time.Time) {
	if len(q.pending) == 0 {
		return 0, time.Time{}
	}
	return len(q.pending), q.pending[0].At
}

// Offer adds an event unless it is known or was processed before. It reports whether the queue has changed.
func (q *Queue) Offer(e Event, now time.Time) bool {
	id := e.ID(q.notifier)
	_, isSettled := q.settled[id]
	if isSettled || !e.At.After(q.through) || now.Sub(e.At) > MaxAge || slices.ContainsFunc(q.pending, func(n *Notification) bool { return n.ID == id }) {
		return false
	}
	if len(q.pending) >= maxQueued {
		if q.overflow.IsZero() || e.At.Before(q.overflow) {
			q.overflow = e.At
		}
		return false
	}
	q.insert(&Notification{Event: e, ID: id}, now)
	return true
}

func (q *Queue) insert(n *Notification, now time.Time) {
	n.until = n.At.Add(MaxAge)
	if least := now.Add(resumeFor); n.Attempts > 0 && n.until.Before(least) {
		n.until = least
	}
	at, _ := slices.BinarySearchFunc(q.pending, n, func(a, b *Notification) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	q.pending = slices.Insert(q.pending, at, n)
}

// HasSpace reports whether events were dropped that would fit now. The caller then offers all events after Through
// again.
func (q *Queue) HasSpace() bool {
	if q.overflow.IsZero() || len(q.pending) > maxQueued/2 {
		return false
	}
	q.overflow = time.Time{}
	return true
}

// Resend puts a finished notification back into the queue, or makes a pending one due. It reports whether the id is
// known.
func (q *Queue) Resend(id string, now time.Time) bool {
	q.notBefore = time.Time{}
	for _, n := range q.pending {
		if n.ID == id {
			n.notBefore = time.Time{}
			return true
		}
	}
	i := slices.IndexFunc(q.finished, func(d v1alpha1.NotifierDelivery) bool { return d.ID == id })
	if i < 0 {
		return false
	}
	d := &q.finished[i]
	n := &Notification{
		Event: Event{Type: d.Event, Kind: d.Kind, Name: d.Name, UID: types.UID(d.UID), At: d.OccurredAt.Time}, ID: d.ID, Attempts: d.Attempts,
	}
	q.insert(n, now)
	n.until = later(n.until, now.Add(resumeFor))
	q.finished = slices.Delete(q.finished, i, i+1)
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Expire finishes expired notifications and returns them.
func (q *Queue) Expire(now time.Time) (expired []*Notification) {
	q.pending = slices.DeleteFunc(q.pending, func(n *Notification) bool {
		if now.Before(n.until) {
			return false
		}
		expired = append(expired, n)
		return true
	})
	for _, n := range expired {
		q.finish(n, v1alpha1.DeliveryFailed, cmp.Or(n.Problem, "it could not be sent within a day"))
	}
	return expired
}

// Next returns the notification to send now, or nil and the time to call it again; zero means never. Notifications
// about the same object are sent in order. Otherwise, notifications with the fewest attempts are sent first, so that a
// rejected one does not delay the rest.
func (q *Queue) Next(now time.Time) (next *Notification, wake time.Time) {
	waiting := map[types.UID]bool{}
	for _, n := range q.pending {
		if waiting[n.UID] {
			continue
		}
		waiting[n.UID] = true
		at := later(n.notBefore, q.notBefore)
		switch {
		case at.After(now):
			if wake.IsZero() || at.Before(wake) {
				wake = at
			}
		case n.Attempts == 0:
			return n, time.Time{}
		case next == nil || n.Attempts < next.Attempts:
			next = n
		}
	}
	if next != nil {
		wake = time.Time{}
	}
	return next, wake
}

// Record records the result of an attempt.
func (q *Queue) Record(n *Notification, r Result, now time.Time) {
	n.Attempts, n.LastAttempt, n.Problem = n.Attempts+1, now, r.Problem
	if r.Problem == "" {
		q.failures, q.notBefore = 0, time.Time{}
		q.pending = slices.DeleteFunc(q.pending, func(other *Notification) bool { return other == n })
		q.finish(n, v1alpha1.DeliveryDelivered, "")
		return
	}
	q.failures++
	requested := min(r.RetryAfter, maxRetryAfter)
	q.notBefore = now.Add(max(pauseAfter(q.failures), requested))
	n.notBefore = now.Add(max(pauseAfter(int(n.Attempts)), requested))
}

// finish moves a notification that was removed from pending to the finished ones.
func (q *Queue) finish(n *Notification, state v1alpha1.DeliveryState, problem string) {
	d := describe(n)
	d.State, d.Message = state, text.Truncate(problem, v1alpha1.MaxDeliveryMessage)
	q.finished = slices.Insert(q.finished, 0, d)
	q.finished = q.finished[:min(len(q.finished), v1alpha1.MaxFinishedDeliveries)]
	q.settled[n.ID] = n.At
}

func describe(n *Notification) v1alpha1.NotifierDelivery {
	d := v1alpha1.NotifierDelivery{
		ID: n.ID, Event: n.Type, Kind: n.Kind, Name: n.Name, UID: string(n.UID), OccurredAt: v1alpha1.NewTime(n.At),
		State: v1alpha1.DeliveryPending, Attempts: n.Attempts, Message: text.Truncate(n.Problem, v1alpha1.MaxDeliveryMessage),
	}
	if !n.LastAttempt.IsZero() {
		d.LastAttemptAt = v1alpha1.NewTimePtr(n.LastAttempt)
	}
	return d
}

// Save writes the queue into a status. seen is the time up to which all events were offered.
func (q *Queue) Save(s *v1alpha1.NotifierStatus, seen time.Time) {
	through := seen.Add(-settlingTime)
	if len(q.pending) > v1alpha1.MaxPendingDeliveries {
		through = earlier(through, q.pending[v1alpha1.MaxPendingDeliveries].At.Add(-time.Millisecond))
	}
	if !q.overflow.IsZero() {
		through = earlier(through, q.overflow.Add(-time.Millisecond))
	}
	q.through = later(q.through, through)
	for id, at := range q.settled {
		if !at.After(q.through) {
			delete(q.settled, id)
		}
	}
	s.ProcessedThrough, s.Pending = v1alpha1.NewTimePtr(q.through), int32(len(q.pending)) //nolint:gosec // at most maxQueued
	s.Deliveries = nil
	for _, n := range slices.Backward(q.pending[:min(len(q.pending), v1alpha1.MaxPendingDeliveries)]) {
		s.Deliveries = append(s.Deliveries, describe(n))
	}
	s.Deliveries = append(s.Deliveries, q.finished...)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
