// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
)

// secretAnnotation names the Secret that a Connection used last, if the Connection
// controls it: once it uses another one, the old one is deleted. Secrets that people
// created are theirs to delete.
const secretAnnotation = "social.herald.dev/credentials-secret"

// tidy deletes the Secret that an earlier connection of the account has left. It runs
// once the new credentials are known to work. If it fails, the next examination tries
// again.
func (r *Reconciler) tidy(ctx context.Context, conn *v1alpha1.Connection, read *credentials.Credentials) {
	used, wanted := conn.Annotations[secretAnnotation], ""
	if read.Controller == conn.UID {
		wanted = conn.Spec.CredentialsSecretRef.Name
	}
	if used == wanted {
		return
	}
	if used != "" && used != conn.Spec.CredentialsSecretRef.Name {
		// The annotation may name any Secret.
		if err := credentials.DeleteControlled(ctx, r.APIReader, r.Client, conn, used); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "the credentials of an earlier connection of the account are still there")
			return
		}
	}
	if err := r.noteSecret(ctx, conn, wanted); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot note which Secret the connection uses")
	}
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
