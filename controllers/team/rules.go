// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/quota"
)

// The label for the creator of an object.
const (
	managedBy       = "app.kubernetes.io/managed-by"
	managedByHerald = "herald"
)

// refuseTeam returns the reason why a team cannot have the namespace that it claims, judging only by the Teams. A team
// cannot own the namespaces of Kubernetes or the manager. If several teams claim the same namespace, the oldest gets
// it.
func refuseTeam(team *v1alpha1.Team, all []v1alpha1.Team, managers string) (conditions.Summary, bool) {
	wanted := team.Spec.Namespace
	if strings.HasPrefix(wanted, "kube-") || wanted == metav1.NamespaceDefault || wanted == managers {
		return stuck(v1alpha1.ReasonNamespaceRefused,
			"namespace %q cannot belong to a team; create another Team with its own namespace", wanted), true
	}
	for i := range all {
		other := &all[i]
		if other.UID != team.UID && other.Spec.Namespace == wanted && quota.Older(other, team) {
			return stuck(v1alpha1.ReasonNamespaceTaken,
				"namespace %q belongs to Team %q, which is older; create another Team with its own namespace", wanted, other.Name), true
		}
	}
	return conditions.Summary{}, false
}

// withoutAccess returns the summary of a team without a namespace, or without a Role in it, in an installation for
// individual namespaces. The manager can create neither.
func withoutAccess(team *v1alpha1.Team) conditions.Summary {
	return stuck(v1alpha1.ReasonNamespaceRefused,
		"this installation has no rights in namespace %[1]q; create it with the label %[2]s=%[3]s, and run helm upgrade, which creates the Role in it",
		team.Spec.Namespace, v1alpha1.TeamLabel, team.Name)
}

// refuseNamespace returns the reason why an existing namespace cannot belong to the team. The namespace's label
// contains its team.
func refuseNamespace(team *v1alpha1.Team, namespace *corev1.Namespace) (conditions.Summary, bool) {
	owner, labelled := namespace.Labels[v1alpha1.TeamLabel]
	switch {
	case !labelled:
		return stuck(v1alpha1.ReasonNamespaceRefused,
			"namespace %[1]q exists and Herald did not create it; to assign it to this team anyway: kubectl label namespace %[1]s %[2]s=%[3]s",
			namespace.Name, v1alpha1.TeamLabel, team.Name), true
	case owner != team.Name:
		return stuck(v1alpha1.ReasonNamespaceTaken,
			"namespace %[1]q is labelled as Team %[2]q's; if that Team is gone, give it to this one: kubectl label --overwrite namespace %[1]s %[3]s=%[4]s",
			namespace.Name, owner, v1alpha1.TeamLabel, team.Name), true
	case !namespace.DeletionTimestamp.IsZero():
		return conditions.Summary{
			Reason:   v1alpha1.ReasonNamespaceRefused,
			Message:  fmt.Sprintf("namespace %q is being deleted; Herald creates it again when it is gone", namespace.Name),
			Progress: conditions.Underway,
		}, true
	default:
		return conditions.Summary{}, false
	}
}

func ready(team *v1alpha1.Team) conditions.Summary {
	return conditions.Summary{
		Ready:    true,
		Reason:   v1alpha1.ReasonNamespaceReady,
		Message:  fmt.Sprintf("namespace %q is this team's; it is kept when the Team is deleted", team.Spec.Namespace),
		Progress: conditions.Settled,
	}
}

func stuck(reason, format string, args ...any) conditions.Summary {
	return conditions.Summary{Reason: reason, Message: fmt.Sprintf(format, args...), Progress: conditions.Stuck}
}
