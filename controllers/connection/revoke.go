// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
)

// revokeWithin bounds the revocation of a token.
const revokeWithin = 15 * time.Second

// revoke gives up Herald's access to an account that a user has disconnected, if the token belongs to an app that Herald
// registered on the account's server. It makes one attempt: a server may be gone forever, and users can remove the app
// there. The tokens are deleted in any case.
func (r *Reconciler) revoke(ctx context.Context, conn *v1alpha1.Connection) {
	platform, ok := r.Platforms[conn.Spec.Platform].(platforms.Revoker)
	if !ok {
		return
	}
	log := ctrl.LoggerFrom(ctx).WithValues("namespace", conn.Namespace, "platform", conn.Spec.Platform, "account", conn.Spec.AccountID)
	found, err := r.Store.Working(ctx, conn)
	if err != nil || found.Token.ClientID == "" {
		if err != nil && credentials.ReasonOf(err) != credentials.NotFound {
			log.Error(err, "the token of a disconnected account cannot be read, and so is not revoked")
		}
		return
	}
	switch used, err := r.usedElsewhere(ctx, conn); {
	case err != nil:
		log.Error(err, "the token of a disconnected account is not revoked, since other connections may use it")
		return
	case used:
		log.Info("the token of a disconnected account is not revoked, since another connection uses the account")
		return
	}
	calling, cancel := context.WithTimeout(ctx, revokeWithin)
	defer cancel()
	if err := platform.Revoke(calling, platforms.Token(found.Token)); err != nil {
		log.Error(err, "the token of a disconnected account was not revoked; its owner can remove Herald from the authorized apps on the server")
		return
	}
	log.Info("the token of a disconnected account was revoked")
}

// usedElsewhere reports whether another connection has the account, in any namespace: a server has one token for an app and
// an account, and returns it to each consent (Mastodon, config/initializers/doorkeeper.rb, reuse_access_token).
func (r *Reconciler) usedElsewhere(ctx context.Context, conn *v1alpha1.Connection) (bool, error) {
	namespaces := []string(r.Namespaces)
	if len(namespaces) == 0 {
		namespaces = []string{""} // all
	}
	for _, namespace := range namespaces {
		var found v1alpha1.ConnectionList
		err := r.APIReader.List(ctx, &found, client.InNamespace(namespace),
			client.MatchingFields{"spec.platform": string(conn.Spec.Platform), "spec.accountID": conn.Spec.AccountID})
		if err != nil {
			return false, fmt.Errorf("cannot list the connections of the account: %w", err)
		}
		for i := range found.Items {
			if found.Items[i].UID != conn.UID {
				return true, nil
			}
		}
	}
	return false, nil
}
