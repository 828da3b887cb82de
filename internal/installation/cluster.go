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

// Cluster returns a function that identifies the cluster behind an API server. The identity is the UID of the namespace
// kube-system, which lasts as long as the cluster's etcd: a rebuilt cluster has a new identity, two clusters that share
// a bucket have different ones, and a cluster whose etcd was restored keeps its identity. The function reads it until
// that succeeds, and then caches it.
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
			return "", fmt.Errorf("cannot identify this cluster by the UID of namespace %q: %w", metav1.NamespaceSystem, err)
		}
		known = string(namespace.UID)
		return known, nil
	}
}
