// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"fmt"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Each event is a write to the API server. Good news is told as long as it
// comes at a pace that a person can read; in a burst the conditions, which
// cost nothing more, tell it alone. Warnings have a budget of their own.
const (
	notesPerSecond    = 2
	notesBurst        = 20
	warningsPerSecond = 5
	warningsBurst     = 50
)

// story tells the owner of a post what happens to it, as events.
type story struct {
	recorder events.EventRecorder
	clock    clock.Clock
	notes    *rate.Limiter
	warnings *rate.Limiter
}

func newStory(recorder events.EventRecorder, clk clock.Clock) *story {
	return &story{
		recorder: recorder, clock: clk,
		notes:    rate.NewLimiter(notesPerSecond, notesBurst),
		warnings: rate.NewLimiter(warningsPerSecond, warningsBurst),
	}
}

// note tells good news.
func (s *story) note(post *v1alpha1.Post, reason, message string) {
	if s.notes.AllowN(s.clock.Now(), 1) {
		s.send(post, corev1.EventTypeNormal, reason, message)
	}
}

// tell tells news of a kind.
func (s *story) tell(post *v1alpha1.Post, kind, reason, message string) {
	if s.warnings.AllowN(s.clock.Now(), 1) {
		s.send(post, kind, reason, message)
	}
}

// limited tells, on a connection, that its platform takes no calls for a while.
func (s *story) limited(conn *v1alpha1.Connection) {
	if s.recorder != nil && s.warnings.AllowN(s.clock.Now(), 1) {
		s.recorder.Eventf(conn, nil, corev1.EventTypeWarning, v1alpha1.ReasonRateLimited, "Deliver", "%s",
			truncate(fmt.Sprintf("nothing is sent before %s: %s", conn.Status.RateLimitedUntil, conn.Status.RateLimitedMessage), maxNote))
	}
}

// maxNote is the greatest length of an event's note that the API takes.
const maxNote = 1000

func (s *story) send(post *v1alpha1.Post, kind, reason, message string) {
	if s.recorder != nil {
		s.recorder.Eventf(post, nil, kind, reason, "Deliver", "%s", truncate(message, maxNote))
	}
}
