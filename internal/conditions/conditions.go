// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions writes the conditions of Herald's kinds so that tools which
// follow the kstatus convention (kubectl wait, Flux, Argo CD) understand them:
// Ready always, Reconciling while the manager works towards it, Stalled when a
// person has to act.
package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// longestMessage is the schema's bound on a condition's message, in
// characters.
const longestMessage = 32768

// Progress tells what happens next.
type Progress string

// The kinds of progress.
const (
	// Settled: nothing is left to do.
	Settled Progress = "settled"
	// Underway: the manager goes on by itself.
	Underway Progress = "underway"
	// Stuck: nothing more happens before a person acts.
	Stuck Progress = "stuck"
)

// Summary is the state of an object in the words of its conditions.
type Summary struct {
	Ready    bool
	Reason   string
	Message  string
	Progress Progress
}

// Apply writes a summary into the conditions of an object. A condition that
// does not change keeps its transition time.
func Apply(conditions *[]metav1.Condition, s Summary, generation int64, now time.Time) {
	set := func(kind string, status metav1.ConditionStatus) {
		message := s.Message
		if len(message) > longestMessage {
			message = message[:longestMessage]
		}
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: kind, Status: status, Reason: s.Reason, Message: message,
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

// unchanged compares as Kubernetes does, and Herald's times by their instant.
var unchanged = func() equalities {
	e := equality.Semantic.Copy()
	if err := e.AddFunc(func(a, b v1alpha1.Time) bool { return a.Time.Equal(b.Time) }); err != nil {
		panic(err)
	}
	return e
}()

type equalities interface{ DeepEqual(a, b any) bool }

// Unchanged tells whether two statuses say the same, so that nothing needs to
// be written. Both are of the same type, or pointers to it.
func Unchanged(before, after any) bool { return unchanged.DeepEqual(before, after) }

// Reason returns the reason of the Ready condition, or "" before there is one.
func Reason(conditions []metav1.Condition) string {
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// IsReady tells whether the Ready condition is True.
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
