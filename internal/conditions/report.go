// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
)

// NoTeamGrace is how long the warning about a missing Team is deferred after an object's creation: a Team applied
// together with the object acquires its namespace a few seconds later.
const NoTeamGrace = 30 * time.Second

// Status is an object's status, with its conditions.
type Status interface{ GetConditions() []metav1.Condition }

// Reporter stores the status of objects of one kind. When the reason of an object's Ready condition changes, it emits
// an event and writes a log line: at info if the new or the previous reason requires user action, otherwise at debug.
type Reporter struct {
	// Client writes the status.
	Client client.Client
	// Events receives the events. It must come from NewEventRecorder. If nil, none are emitted.
	Events events.EventRecorder
	// Action is the events' action.
	Action string
	// Normal are the reasons that do not require user action. An event with any other reason is a warning.
	Normal []string
	// Clock measures NoTeamGrace.
	Clock clock.PassiveClock

	mu sync.Mutex
	// deferred maps objects with a deferred warning to the time when it is due.
	deferred map[types.UID]time.Time
}

// Report stores after as the status of obj, at obj's resourceVersion. It does not write if after is semantically equal
// to before. A deleted object is not an error; other errors wrap an error of the Kubernetes API.
func (r *Reporter) Report(ctx context.Context, obj client.Object, before, after Status) error {
	if !v1alpha1.SemanticEqual(before, after) {
		if err := r.Client.Status().Update(ctx, obj); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot write the status: %w", err)
		}
	}
	ready := meta.FindStatusCondition(after.GetConditions(), v1alpha1.ConditionReady)
	was := Reason(before.GetConditions())
	if ready == nil || !r.shouldReport(obj, ready.Reason, was) {
		return nil
	}
	r.log(ctx, ready, was)
	if r.Events == nil {
		return nil
	}
	kind := corev1.EventTypeWarning
	if slices.Contains(r.Normal, ready.Reason) {
		kind = corev1.EventTypeNormal
	}
	r.Events.Eventf(obj, nil, kind, ready.Reason, r.Action, "%s", text.TruncateBytes(ready.Message, MaxEventNote))
	return nil
}

func (r *Reporter) log(ctx context.Context, ready *metav1.Condition, was string) {
	log, message := ctrl.LoggerFrom(ctx), "not ready"
	if ready.Status == metav1.ConditionTrue {
		message = "ready"
	}
	if slices.Contains(r.Normal, ready.Reason) && (was == "" || slices.Contains(r.Normal, was)) {
		log = log.V(1)
	}
	log.Info(message, "reason", ready.Reason, "message", ready.Message)
}

// RequeueAfter returns the time until an object must be reported again: rest, or less if a warning is due earlier. Zero
// means never.
func (r *Reporter) RequeueAfter(obj client.Object, rest time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, isDeferred := r.deferred[obj.GetUID()]
	if !isDeferred {
		return rest
	}
	in := max(until.Sub(r.Clock.Now()), time.Millisecond)
	if rest <= 0 {
		return in
	}
	return min(rest, in)
}

// shouldReport reports whether to report a reason: it has changed, or its warning was deferred. While an object is
// young, the warning about a missing Team is deferred.
func (r *Reporter) shouldReport(obj client.Object, reason, was string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, isDeferred := r.deferred[obj.GetUID()]
	delete(r.deferred, obj.GetUID())
	if reason == v1alpha1.ReasonNoTeam && r.Clock != nil {
		// Defer the warning even if the reason is unchanged: an earlier process may have deferred it.
		if now, until := r.Clock.Now(), obj.GetCreationTimestamp().Add(NoTeamGrace); until.After(now) {
			r.deferWarning(obj.GetUID(), until, now)
			return false
		}
	}
	return reason != was || isDeferred
}

// deferWarning defers the warning about an object. It drops objects that were not reported again, since those are
// deleted. The caller must hold the lock.
func (r *Reporter) deferWarning(uid types.UID, until, now time.Time) {
	for other, over := range r.deferred {
		if now.Sub(over) > NoTeamGrace {
			delete(r.deferred, other)
		}
	}
	if r.deferred == nil {
		r.deferred = map[types.UID]time.Time{}
	}
	r.deferred[uid] = until
}
