// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
)

// secretAnnotation names the Secret that a Connection used last, if that goes
// with the Connection: once it uses another one, the old one is deleted. Secrets
// that people made are theirs to delete.
const secretAnnotation = "social.herald.dev/credentials-secret"

// tidy removes the Secret that an earlier connection of the account has left.
// It runs once the new credentials are known to work. If it fails, the next
// examination tries again.
func (r *Reconciler) tidy(ctx context.Context, conn *v1alpha1.Connection, read *credentials.Credentials) {
	used, wanted := conn.Annotations[secretAnnotation], ""
	if read.Controller == conn.UID {
		wanted = conn.Spec.CredentialsSecretRef.Name
	}
	if used == wanted {
		return
	}
	if used != "" && used != conn.Spec.CredentialsSecretRef.Name {
		if err := r.removeSecret(ctx, conn, used); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "the credentials of an earlier connection of the account are still there")
			return
		}
	}
	if err := r.noteSecret(ctx, conn, wanted); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot note which Secret the connection uses")
	}
}

// removeSecret deletes a Secret that goes with the connection, and no other
// one: the annotation may say anything.
func (r *Reconciler) removeSecret(ctx context.Context, conn *v1alpha1.Connection, name string) error {
	var old corev1.Secret
	err := r.APIReader.Get(ctx, types.NamespacedName{Namespace: conn.Namespace, Name: name}, &old)
	if err == nil && metav1.IsControlledBy(&old, conn) {
		err = r.Client.Delete(ctx, &old, client.Preconditions{UID: &old.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete Secret %q: %w", name, err)
	}
	return nil
}

func (r *Reconciler) noteSecret(ctx context.Context, conn *v1alpha1.Connection, name string) error {
	var value any
	if name != "" {
		value = name
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": conn.UID, "annotations": map[string]any{secretAnnotation: value}},
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, conn.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}
