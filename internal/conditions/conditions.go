// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions writes the conditions of Herald's kinds according to the kstatus convention, which kubectl wait,
// Flux and Argo CD follow: Ready is always present, Reconciling while the manager is working towards it, and Stalled
// when a person must act. It reports their changes as events and log lines.
package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
)

// longestMessage is the schema's limit for a condition's message, in characters.
const longestMessage = 32768

// Progress describes what happens next to an object.
type Progress string

// The values of Progress.
const (
	// Settled: nothing is left to do.
	Settled Progress = "settled"
	// Underway: the manager continues without help.
	Underway Progress = "underway"
	// Stuck: nothing happens until a user acts.
	Stuck Progress = "stuck"
)

// Summary is an object's state. Its conditions are derived from it.
type Summary struct {
	Ready    bool
	Reason   string
	Message  string
	Progress Progress
}

// Apply writes a summary to an object's conditions. A condition whose status does not change keeps its transition time.
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

// Message returns the message of the Ready condition, or "" before there is one.
func Message(conditions []metav1.Condition) string {
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Message
	}
	return ""
}

// IsReady reports whether the Ready condition is True.
func IsReady(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady)
}

// Since returns the Ready condition's last transition time, or zero before there is one.
func Since(conditions []metav1.Condition) time.Time {
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.LastTransitionTime.Time
	}
	return time.Time{}
}
