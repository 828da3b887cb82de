// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clockcondition reports in a condition of a process's own pod whether the machine's clock agrees with the
// Kubernetes API's. Package internal/apiclock compares them.
package clockcondition

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/herald-social/herald/internal/apiclock"
)

// Type is the type of the condition. The policy herald-own-pod (config/rbac) forbids the processes all other types.
const Type corev1.PodConditionType = "social.herald.dev/ClockAgrees"

// Reasons of the condition, by status: true, false, and three for unknown.
const (
	ReasonAgrees          = "Agrees"
	ReasonCorrected       = "Corrected"
	ReasonNotMeasured     = "NotMeasured"
	ReasonNotSettled      = "NotSettled"
	ReasonServersDisagree = "ServersDisagree"
)

// shown is the rounding of offsets in messages, which is their precision.
const shown = 100 * time.Millisecond

// Of returns the condition for a measurement, without times. It is stable while the correction does not change.
func Of(s apiclock.Measurement) corev1.PodCondition {
	condition := corev1.PodCondition{Type: Type, Status: corev1.ConditionUnknown}
	switch {
	case !s.Measured:
		condition.Reason = ReasonNotMeasured
		condition.Message = "No answer of the Kubernetes API had a header Date, so that this process cannot tell the time and is not ready. " +
			"See what stands between this pod and the Kubernetes API, such as a proxy."
	case s.Inconsistent:
		condition.Reason = ReasonServersDisagree
		condition.Message = fmt.Sprintf("Answers of the Kubernetes API give times that are more than %s apart, so that this process cannot tell the time and is not ready. "+
			"Mend the clocks of the control plane, or of this pod's node.", apiclock.MaxSpread)
	case s.Unsettled:
		condition.Reason = ReasonNotSettled
		condition.Message = fmt.Sprintf("The last answer of the Kubernetes API gives a time that differs by more than %s from what those before it gave. "+
			"Herald goes by it once the next one agrees. If this stays, mend the clocks of the control plane, whose machines disagree, or of this pod's node.", apiclock.Tolerance)
	case s.Correction != 0:
		condition.Status, condition.Reason = corev1.ConditionFalse, ReasonCorrected
		condition.Message = fmt.Sprintf("The clock of this machine is %s that of the Kubernetes API. Herald goes by the latter; the store and platforms may refuse what is signed by the former. "+
			"Mend the clock of this pod's node (chronyc tracking, timedatectl timesync-status), or of the control plane if all pods say so.", describeOffset(s.Correction))
	default:
		condition.Status, condition.Reason = corev1.ConditionTrue, ReasonAgrees
		condition.Message = fmt.Sprintf("The clock of this machine and that of the Kubernetes API do not certainly differ by more than %s.", apiclock.Tolerance)
	}
	return condition
}

// describeOffset describes the offset of a machine's clock that has this correction.
func describeOffset(correction time.Duration) string {
	if correction < 0 {
		return correction.Abs().Round(shown).String() + " ahead of"
	}
	return correction.Round(shown).String() + " behind"
}
