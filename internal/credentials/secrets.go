// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeleteControlled deletes the Secret of this name in the owner's namespace, if the
// owner controls it; no other Secret, and none is no error. The reader must ask the
// API server. Errors are those of the Kubernetes API, wrapped.
func DeleteControlled(ctx context.Context, reader client.Reader, writer client.Writer, owner client.Object, name string) error {
	var secret corev1.Secret
	err := reader.Get(ctx, types.NamespacedName{Namespace: owner.GetNamespace(), Name: name}, &secret)
	if err == nil && metav1.IsControlledBy(&secret, owner) {
		err = writer.Delete(ctx, &secret, client.Preconditions{UID: &secret.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete Secret %q: %w", name, err)
	}
	return nil
}
