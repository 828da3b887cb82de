// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions writes the conditions of Herald's kinds as the kstatus
// convention asks (kubectl wait, Flux and Argo CD follow it): Ready always,
// Reconciling while the manager works towards it, Stalled when a person has to
// act.
package conditions

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/distinct"
	"github.com/herald-social/herald/internal/text"
)

// longestMessage is the schema's bound on a condition's message, in
// characters.
const longestMessage = 32768

// Progress says what happens next.
type Progress string

// The kinds of progress.
const (
	// Settled: nothing is left to do.
	Settled Progress = "settled"
	// Underway: the manager continues without help.
	Underway Progress = "underway"
	// Stuck: nothing happens until a person acts.
	Stuck Progress = "stuck"
)

// Summary is the state of an object, from which its conditions follow.
type Summary struct {
	Ready    bool
	Reason   string
	Message  string
	Progress Progress
}

// Apply writes a summary into the conditions of an object. A condition whose
// status stays keeps its transition time.
func Apply(conditions *[]metav1.Condition, s Summary, generation int64, now time.Time) {
	set := func(kind string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: kind, Status: status, Reason: s.Reason, Message: text.Truncate(s.Message, longestMessage),
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	ready := metav1.ConditionFalse
	if s.Ready {
		ready = metav1.ConditionTrue
	}
	set(v1alpha1.ConditionReady, ready)
	switch s.Progress {
	case Underway:
		set(v1alpha1.ConditionReconciling, metav1.ConditionTrue)
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
	case Stuck:
		set(v1alpha1.ConditionStalled, metav1.ConditionTrue)
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
	case Settled:
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionReconciling)
		meta.RemoveStatusCondition(conditions, v1alpha1.ConditionStalled)
	}
}

// Reason returns the reason of the Ready condition, or "" before there is one.
func Reason(conditions []metav1.Condition) string {
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// IsReady reports whether the Ready condition is True.
func IsReady(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady)
}

// Since returns when the Ready condition last changed its status; zero before
// there is one.
func Since(conditions []metav1.Condition) time.Time {
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.LastTransitionTime.Time
	}
	return time.Time{}
}

// Status is the status of an object, with its conditions.
type Status interface{ GetConditions() []metav1.Condition }

// Reporter stores the status of objects of one kind, and emits an event when
// the reason of their Ready condition changes.
type Reporter struct {
	// Client writes the status.
	Client client.Client
	// Events takes the events, and keeps apart those with different notes (package distinct); nil emits none.
	Events events.EventRecorder
	// Action is what the events say was done.
	Action string
	// Normal are the reasons that no person has to look at; an event with any
	// other reason is a warning.
	Normal []string
}

// Report stores after, the status of obj, under the resourceVersion of obj. It
// writes nothing if after means the same as before. An object that is gone is no
// error; other errors are those of the Kubernetes API, wrapped.
func (r *Reporter) Report(ctx context.Context, obj client.Object, before, after Status) error {
	if v1alpha1.SemanticEqual(before, after) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, obj); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	ready := meta.FindStatusCondition(after.GetConditions(), v1alpha1.ConditionReady)
	if r.Events == nil || ready == nil || ready.Reason == Reason(before.GetConditions()) {
		return nil
	}
	kind := corev1.EventTypeWarning
	if slices.Contains(r.Normal, ready.Reason) {
		kind = corev1.EventTypeNormal
	}
	r.Events.Eventf(obj, nil, kind, ready.Reason, r.Action, "%s", text.TruncateBytes(ready.Message, distinct.MaxNote))
	return nil
}
