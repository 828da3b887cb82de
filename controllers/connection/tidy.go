// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// tidy removes the Secrets that earlier connections of an account have left:
// those whose controller is this Connection and to which it does not refer any
// more. Their content is not read. It runs once the new credentials are known
// to work; what it misses does no harm.
func (r *Reconciler) tidy(ctx context.Context, conn *v1alpha1.Connection) {
	if err := r.removeOldSecrets(ctx, conn); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the credentials of an earlier connection of the account are still there")
	}
}

func (r *Reconciler) removeOldSecrets(ctx context.Context, conn *v1alpha1.Connection) error {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.live.List(ctx, secrets, client.InNamespace(conn.Namespace)); err != nil {
		return fmt.Errorf("cannot list the Secrets: %w", err)
	}
	for i := range secrets.Items {
		old := &secrets.Items[i]
		if old.Name == conn.Spec.CredentialsSecretRef.Name || !metav1.IsControlledBy(old, conn) {
			continue
		}
		err := r.client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name}}, client.Preconditions{UID: &old.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete Secret %q: %w", old.Name, err)
		}
	}
	return nil
}
