// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestSemanticEqual(t *testing.T) {
	status := func(probed time.Time, version string) *v1alpha1.ConnectionStatus {
		return &v1alpha1.ConnectionStatus{LastProbedAt: &v1alpha1.Time{Time: probed}, CredentialsVersion: version}
	}
	tests := map[string]struct {
		reason string
		after  *v1alpha1.ConnectionStatus
		want   bool
	}{
		"same":       {"no write is needed", status(noon, "1"), true},
		"other zone": {"the time zone is ignored", status(noon.In(time.FixedZone("", 3600)), "1"), true},
		"empty list": {"an empty list equals a missing one", func() *v1alpha1.ConnectionStatus {
			s := status(noon, "1")
			s.Conditions = []metav1.Condition{}
			return s
		}(), true},
		"later":         {"a millisecond counts", status(noon.Add(time.Millisecond), "1"), false},
		"other version": {"only the version differs", status(noon, "2"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := v1alpha1.SemanticEqual(status(noon, "1"), tc.after); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
