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

// adoptionTimeout is how long a Secret that the apiserver has noted may take to become
// that of its connection. The apiserver gives itself less than a minute, with clocks
// that differ.
const adoptionTimeout = 10 * time.Minute

// sweepSecrets deletes the Secrets that the apiserver made for a connection and that are not
// in use: those of accounts that were connected again, and those of an apiserver that
// ended in between. Each is noted in an annotation of the connection, because Secrets
// cannot be listed. It runs once the credentials in use are known to work. What fails
// is tried again with the next examination.
func (r *Reconciler) sweepSecrets(ctx context.Context, conn *v1alpha1.Connection) {
	gone := map[string]any{}
	for key, since := range conn.Annotations {
		name, noted := strings.CutPrefix(key, v1alpha1.MadeSecretPrefix)
		if !noted || name == conn.Spec.CredentialsSecretRef.Name {
			continue
		}
		at, err := time.Parse(time.RFC3339, since)
		if err == nil && r.Clock.Now().Before(at.Add(adoptionTimeout)) {
			continue
		}
		// The annotation may name any Secret: only one of this connection goes.
		if err := credentials.DeleteControlled(ctx, r.APIReader, r.Client, conn, name); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "credentials that are not in use are still there")
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
		ctrl.LoggerFrom(ctx).Error(err, "cannot note which Secrets of the connection were removed")
	}
}
