// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"

	"github.com/herald-social/herald/api/v1alpha1"
)

// NoTeam is the state of an object in a namespace that no Team owns. Its progress is Underway: a Team that is applied
// together with the object owns the namespace a moment later.
func NoTeam(namespace string) Summary {
	return Summary{Reason: v1alpha1.ReasonNoTeam, Message: NoTeamProblem(namespace) + "; " + NoTeamRemedy(namespace), Progress: Underway}
}

// NoTeamProblem describes the problem with a namespace that no Team owns.
func NoTeamProblem(namespace string) string {
	return fmt.Sprintf("no Team owns namespace %q, so Herald does nothing in it", namespace)
}

// NoTeamRemedy describes the remedy.
func NoTeamRemedy(namespace string) string {
	return fmt.Sprintf("use the namespace of a Team, or have an administrator create a Team with spec.namespace %q "+
		"(`kubectl get teams` lists the existing ones, and why one does not own its namespace)", namespace)
}
