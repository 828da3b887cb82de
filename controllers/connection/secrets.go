// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
)

// adoptionTimeout is how long a Secret recorded by the apiserver may take to become the connection's Secret. The
// apiserver's own timeout is under a minute; the rest allows for clock skew.
const adoptionTimeout = 10 * time.Minute

// sweepSecrets deletes the unused Secrets that the apiserver created for a connection. They hold earlier credentials,
// or were left by an apiserver that exited too early. An annotation on the connection records each, because Secrets
// cannot be listed. It runs once the credentials in use are known to work. The next examination retries failures.
func (r *Reconciler) sweepSecrets(ctx context.Context, conn *v1alpha1.Connection) {
	gone := map[string]any{}
	for key, since := range conn.Annotations {
		name, recorded := strings.CutPrefix(key, v1alpha1.MadeSecretPrefix)
		if !recorded || name == conn.Spec.CredentialsSecretRef.Name {
			continue
		}
		at, err := time.Parse(time.RFC3339, since)
		if err == nil && r.Clock.Now().Before(at.Add(adoptionTimeout)) {
			continue
		}
		// The annotation may name any Secret: delete only one that this connection controls.
		if err := credentials.DeleteControlled(ctx, r.APIReader, r.Client, conn, name); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot delete unused credentials")
			continue
		}
		gone[key] = nil
	}
	if len(gone) == 0 {
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": conn.UID, "annotations": gone}})
	if err == nil {
		err = client.IgnoreNotFound(r.Client.Patch(ctx, conn.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot record the connection's removed Secrets")
	}
}
