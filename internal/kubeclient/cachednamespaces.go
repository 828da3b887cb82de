// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// CacheByNamespace limits a cache to the namespaces that an installation serves. It returns nil for no limit. An
// installation that serves only certain namespaces is not allowed to list objects in others.
func CacheByNamespace(served configv1alpha1.Namespaces) map[string]cache.Config {
	if len(served) == 0 {
		return nil
	}
	namespaces := make(map[string]cache.Config, len(served))
	for _, namespace := range served {
		namespaces[namespace] = cache.Config{}
	}
	return namespaces
}
