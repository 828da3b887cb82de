// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness finds out whether a connection can be posted to right now:
// from a recent check, or by asking the manager for one and waiting for its
// answer. The apiserver itself holds no token and calls no platform.
package readiness

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// goodFor is how long a good check counts.
const goodFor = time.Minute

// State says whether a connection can be posted to.
type State int

// States of a connection.
const (
	// Unavailable: it is not known at the moment.
	Unavailable State = iota
	// Ready: it can.
	Ready
	// Reconnect: not before a person does something about it.
	Reconnect
)

// String is the value of the label "answer" in metrics.
func (v State) String() string { return [...]string{"unavailable", "ready", "reconnect"}[v] }

// Result is the answer to a check.
type Result struct {
	State State
	// Message says why, in words; it may be empty.
	Message string
}

// noAnswer is the result when the manager did not answer in time.
var noAnswer = Result{Message: "its platform has not answered yet"}

// fresh reports whether a good check of the connection as it stands now is
// recent enough to count. A bad one never is: it may have been mended since.
func fresh(connection *v1alpha1.Connection, now time.Time) bool {
	status := &connection.Status
	return status.LastProbedAt != nil &&
		now.Sub(status.LastProbedAt.Time) < goodFor &&
		status.ObservedGeneration == connection.Generation &&
		meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady)
}

// judge reads the answer to a check out of the Ready condition.
func judge(connection *v1alpha1.Connection) Result {
	ready := meta.FindStatusCondition(connection.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return noAnswer
	}
	if ready.Status == metav1.ConditionTrue {
		return Result{State: Ready}
	}
	switch ready.Reason {
	case v1alpha1.ReasonTokenExpired, v1alpha1.ReasonRevoked,
		v1alpha1.ReasonCredentialsNotFound, v1alpha1.ReasonCredentialsInvalid,
		v1alpha1.ReasonAccountMismatch, v1alpha1.ReasonDisabled:
		return Result{State: Reconnect, Message: ready.Message}
	default:
		return Result{State: Unavailable, Message: ready.Message}
	}
}

// answered reports whether the check that was asked for with token is done, on
// a connection that is as new as that request, which was stored as version asked.
// If another replica's request has taken the place of ours, its answer counts: that
// check began after ours was asked for.
func answered(connection *v1alpha1.Connection, token string, asked uint64) bool {
	version, err := postindex.ParseVersion(connection.ResourceVersion)
	handled := connection.Status.LastHandledProbe
	return err == nil && version >= asked && handled != "" &&
		(handled == token || handled == connection.Annotations[v1alpha1.ProbeAnnotation])
}
