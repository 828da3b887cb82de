// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/text"
)

const (
	// MaxEventNote is the maximum length of a note in bytes. events.k8s.io/v1 rejects notes longer than 1,024 bytes.
	MaxEventNote = 1000

	// seriesTTL is how long the notes of a series are remembered. client-go ends a series six minutes after its last
	// event, and looks for such series every six minutes.
	seriesTTL = 15 * time.Minute
	// maxSeries is the maximum number of remembered series: fifteen minutes at 18 events per second. The least recently
	// used series is dropped first.
	maxSeries = 1 << 14
)

// EventRecorder is an events.EventRecorder whose events share a series only if they have the same note.
//
// client-go adds an event to a series if an earlier event has the same type, reason, action, reporter, regarding and
// related. It does not compare notes, and stores only the note of the first event. Without this type, the second of two
// refusals would show up only as a count.
type EventRecorder struct {
	to     events.EventRecorder
	scheme *runtime.Scheme

	mu    sync.Mutex
	notes *cache.LRUExpireCache
}

var _ events.EventRecorder = (*EventRecorder)(nil)

// NewEventRecorder returns an EventRecorder that passes events on to the given recorder. It returns nil if to is nil,
// so that nothing is recorded. The scheme must contain the kinds that events are about.
func NewEventRecorder(to events.EventRecorder, scheme *runtime.Scheme, clk clock.PassiveClock) events.EventRecorder {
	if to == nil {
		return nil
	}
	return &EventRecorder{to: to, scheme: scheme, notes: cache.NewLRUExpireCacheWithClock(maxSeries, clk)}
}

// series holds the fields that client-go compares, except those that are the same for all events of an EventRecorder.
type series struct {
	kind, reason, action string
	regarding, related   corev1.ObjectReference
}

// Eventf records an event. From a series' second note on, it appends a number to the action: Deliver, Deliver-2.
func (r *EventRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	note = text.TruncateBytes(fmt.Sprintf(note, args...), MaxEventNote)
	about, with := r.refer(regarding), r.refer(related)
	key := series{kind: kind, reason: reason, action: action}
	if about != nil {
		key.regarding, regarding = *about, about
	}
	if with != nil {
		key.related, related = *with, with
	}
	if n := r.number(key, note); n > 1 {
		action = fmt.Sprintf("%s-%d", action, n)
	}
	r.to.Eventf(regarding, related, kind, reason, action, "%s", note)
}

func (r *EventRecorder) number(of series, note string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var notes []string
	if known, ok := r.notes.Get(of); ok {
		notes, _ = known.([]string)
	}
	at := slices.Index(notes, note)
	if at < 0 {
		at, notes = len(notes), append(notes, note)
	}
	r.notes.Add(of, notes, seriesTTL)
	return at + 1
}

// refer returns a reference to object, as client-go makes it. It returns nil if that fails, which client-go logs.
func (r *EventRecorder) refer(object runtime.Object) *corev1.ObjectReference {
	if object == nil {
		return nil
	}
	ref, err := reference.GetReference(r.scheme, object)
	if err != nil {
		return nil
	}
	return ref
}
