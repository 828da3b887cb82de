// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		namespaces   Namespaces
		want         []string
	}{
		{"all namespaces", "one watch of the cluster is cheaper than one for each team", nil, []string{metav1.NamespaceAll}},
		{"some namespaces", "the roles grant nothing in others", Namespaces{"b", "a"}, []string{"a", "b"}},
		{"a namespace given twice", "a second watch would report each change again", Namespaces{"a", "b", "a"}, []string{"a", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			given := slices.Clone(tt.namespaces)
			if got := tt.namespaces.Scopes(); !slices.Equal(got, tt.want) {
				t.Errorf("Scopes() = %q, want %q: %s", got, tt.want, tt.reason)
			}
			if !slices.Equal(tt.namespaces, given) {
				t.Errorf("Scopes() changed the configuration to %q", tt.namespaces)
			}
		})
	}
}
