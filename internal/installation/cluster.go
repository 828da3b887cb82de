// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster returns what tells the identity of the cluster behind an API server: the UID of
// its namespace kube-system, which lives as long as the cluster's etcd. A cluster that is
// made anew has another one, and so have two that share a bucket; one whose etcd was put
// back keeps its own. It is asked for until it is known, and then remembered.
func Cluster(api client.Reader) func(ctx context.Context) (string, error) {
	var mu sync.Mutex
	var known string
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if known != "" {
			return known, nil
		}
		namespace := metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := api.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
			return "", fmt.Errorf("cannot tell which cluster this is, by the UID of namespace %q: %w", metav1.NamespaceSystem, err)
		}
		known = string(namespace.UID)
		return known, nil
	}
}
