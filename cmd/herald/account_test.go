// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestSubject(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, username string
		want             rbacv1.Subject
	}{
		"pod": {
			"an installation of any name, in any namespace", "system:serviceaccount:social:acme-manager",
			rbacv1.Subject{Kind: "ServiceAccount", Namespace: "social", Name: "acme-manager"},
		},
		"person":  {"the manager runs with a kubeconfig", "jane", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "jane"}},
		"not one": {"the name only resembles a service account", "system:serviceaccount:x", rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "system:serviceaccount:x"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, subject(tc.username)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
