// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notify decides which notifications a Notifier sends, when, and with which content. Events are derived from
// facts in the status of posts, connections and media, so that every process derives the same ones. It does not perform
// I/O or read a clock.
package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

// Kinds of objects that events are about.
const (
	KindPost       = "Post"
	KindConnection = "Connection"
	KindMedia      = "Media"
)

// ExpiringWithin is how long before its reconnection deadline a connection is reported, as in the web application.
const ExpiringWithin = 7 * 24 * time.Hour

// Event is something that happened to an object.
type Event struct {
	Type v1alpha1.NotifierEvent
	// Kind, Name and UID identify the object.
	Kind, Name string
	UID        types.UID
	// At is the time in the object's status, so it is the same for each process that derives the event.
	At time.Time
}

// ID returns the id of the event's notification by a Notifier. It is the same for each process and attempt.
func (e *Event) ID(notifier types.UID) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%d", notifier, e.UID, e.Type, e.At.UnixMilli()))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// OfPost returns the event of a post's current state, or false if there is none.
func OfPost(p *v1alpha1.Post) (Event, bool) {
	e := Event{Kind: KindPost, Name: p.Name, UID: p.UID}
	if !p.Status.Finished {
		unknown := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionOutcomeUnknown)
		if unknown == nil || unknown.Status != "True" {
			return e, false
		}
		e.Type, e.At = v1alpha1.EventPostNeedsAttention, unknown.LastTransitionTime.Time
		return e, true
	}
	switch p.Status.Phase {
	case v1alpha1.PhasePosted:
		e.Type = v1alpha1.EventPostPosted
	case v1alpha1.PhaseFailed:
		e.Type = v1alpha1.EventPostFailed
	case v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhaseProcessing, v1alpha1.PhaseCancelled:
		return e, false
	}
	if p.Status.FinishedAt == nil || e.Type == "" {
		return e, false
	}
	e.At = p.Status.FinishedAt.Time
	return e, true
}

// OfConnection returns the events of a connection's current state.
func OfConnection(c *v1alpha1.Connection, now time.Time) (events []Event) {
	e := Event{Kind: KindConnection, Name: c.Name, UID: c.UID}
	stalled := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled != nil && stalled.Status == "True" && stalled.Reason != v1alpha1.ReasonDisabled {
		e.Type, e.At = v1alpha1.EventConnectionBroken, stalled.LastTransitionTime.Time
		return append(events, e)
	}
	by := c.Status.ReconnectBy
	if by == nil || c.Spec.Disabled || !now.Before(by.Time) || !conditions.IsReady(c.Status.Conditions) {
		return nil
	}
	// An account that was connected within the last week of its deadline is reported as of then.
	e.Type, e.At = v1alpha1.EventConnectionExpiring, by.Add(-ExpiringWithin)
	if since := conditions.Since(c.Status.Conditions); since.After(e.At) {
		e.At = since
	}
	if now.Before(e.At) {
		return nil
	}
	return append(events, e)
}

// OfMedia returns the event of a file's current state, or false if there is none.
func OfMedia(m *v1alpha1.Media) (Event, bool) {
	e := Event{Type: v1alpha1.EventMediaRejected, Kind: KindMedia, Name: m.Name, UID: m.UID}
	stalled := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionStalled)
	if m.Status.Phase != v1alpha1.MediaRejected || stalled == nil || stalled.Status != "True" {
		return e, false
	}
	e.At = stalled.LastTransitionTime.Time
	return e, true
}
