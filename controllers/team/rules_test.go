// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func team(name, namespace string, created time.Time) v1alpha1.Team {
	return v1alpha1.Team{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(created)},
		Spec:       v1alpha1.TeamSpec{Namespace: namespace},
	}
}

func TestRefuseTeam(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		team   v1alpha1.Team
		others []v1alpha1.Team
		want   string
		names  string
	}{
		"alone":                {reason: "no other team requests it", team: team("acme", "team-acme", noon)},
		"itself":               {reason: "a team is in its own list", team: team("acme", "team-acme", noon), others: []v1alpha1.Team{team("acme", "team-acme", noon)}},
		"another namespace":    {reason: "other teams do not matter", team: team("acme", "team-acme", noon), others: []v1alpha1.Team{team("b", "team-b", noon.Add(-time.Hour))}},
		"older than the other": {reason: "the older team keeps the namespace", team: team("z", "shared", noon), others: []v1alpha1.Team{team("a", "shared", noon.Add(time.Second))}},
		"younger":              {reason: "the older team has the namespace", team: team("a", "shared", noon.Add(time.Second)), others: []v1alpha1.Team{team("z", "shared", noon)}, want: v1alpha1.ReasonNamespaceTaken, names: `"z"`},
		"same second":          {reason: "one of two always wins", team: team("b", "shared", noon), others: []v1alpha1.Team{team("a", "shared", noon)}, want: v1alpha1.ReasonNamespaceTaken, names: `"a"`},
		"same second, first":   {reason: "the order is the same for the other team", team: team("a", "shared", noon), others: []v1alpha1.Team{team("b", "shared", noon)}},
		"Kubernetes' own":      {reason: "kube-* namespaces cannot belong to a team", team: team("acme", "kube-public", noon), want: v1alpha1.ReasonNamespaceRefused, names: `"kube-public"`},
		"default":              {reason: "the default namespace cannot belong to a team", team: team("acme", "default", noon), want: v1alpha1.ReasonNamespaceRefused, names: `"default"`},
		"the manager's":        {reason: "its Secrets do not belong to a team", team: team("acme", "herald-system", noon), want: v1alpha1.ReasonNamespaceRefused, names: `"herald-system"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, refused := refuseTeam(&tc.team, tc.others, "herald-system")
			if got.Reason != tc.want || refused != (tc.want != "") || !strings.Contains(got.Message, tc.names) {
				t.Errorf("%s: got %v %+v", tc.reason, refused, got)
			}
			if refused && got.Progress != conditions.Stuck {
				t.Errorf("%s: a user has to act, but progress is %s", tc.reason, got.Progress)
			}
		})
	}
}

func TestRefuseNamespace(t *testing.T) {
	now := metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		reason   string
		labels   map[string]string
		deleted  *metav1.Time
		want     string
		progress conditions.Progress
	}{
		"ours":            {reason: "the label names this team", labels: map[string]string{v1alpha1.TeamLabel: "acme"}},
		"another owner's": {reason: "an existing namespace is not taken over", want: v1alpha1.ReasonNamespaceRefused, progress: conditions.Stuck},
		"another team's":  {reason: "the label names another team", labels: map[string]string{v1alpha1.TeamLabel: "b"}, want: v1alpha1.ReasonNamespaceTaken, progress: conditions.Stuck},
		"empty label":     {reason: "an empty label does not name a team", labels: map[string]string{v1alpha1.TeamLabel: ""}, want: v1alpha1.ReasonNamespaceTaken, progress: conditions.Stuck},
		"going":           {reason: "the namespace can be recreated after its deletion", labels: map[string]string{v1alpha1.TeamLabel: "acme"}, deleted: &now, want: v1alpha1.ReasonNamespaceRefused, progress: conditions.Underway},
	} {
		t.Run(name, func(t *testing.T) {
			acme := team("acme", "team-acme", noon)
			got, refused := refuseNamespace(&acme, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-acme", Labels: tc.labels, DeletionTimestamp: tc.deleted}})
			if got.Reason != tc.want || refused != (tc.want != "") || got.Progress != tc.progress {
				t.Errorf("%s: got %v %+v", tc.reason, refused, got)
			}
		})
	}
}
