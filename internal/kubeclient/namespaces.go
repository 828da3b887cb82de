// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadNamespace returns a namespace's metadata, or nil if it does not exist. Herald does not cache namespaces:
// abandoning work because a namespace is being deleted must not depend on stale data.
func ReadNamespace(ctx context.Context, api client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := api.Get(ctx, client.ObjectKey{Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is a valid result
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read namespace %q: %w", name, err)
	}
	return found, nil
}

// IsNamespaceTerminating reports whether a namespace is being deleted, or is already gone.
func IsNamespaceTerminating(ctx context.Context, api client.Reader, name string) (bool, error) {
	found, err := ReadNamespace(ctx, api, name)
	return err == nil && (found == nil || !found.DeletionTimestamp.IsZero()), err
}
