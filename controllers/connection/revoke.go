// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/platforms"
)

const (
	// revokeAfter is the pause between the deletion of a disconnected account's connection and the revocation of its
	// token. By then, users who have just returned from the server with the same token have a connection (connect's
	// finishTimeout is 50 s), it has been examined, and posts that were being sent with the token are complete.
	revokeAfter = 2 * time.Minute
	revokeEvery = 15 * time.Second
	// revokeTimeout bounds the request to the server.
	revokeTimeout = 15 * time.Second
)

// tokenRevoker revokes the tokens of accounts that users disconnected, if the platform supports it and no other
// connection uses the token.
type tokenRevoker struct {
	client, apiReader client.Reader
	platforms         platforms.Registry
	store             *credentials.Store
	clock             clock.Clock
	owned             func(ctx context.Context, namespace string) (bool, error)
	namespaces        configv1alpha1.Namespaces

	// scheduled holds the tokens to revoke, by the connection's UID.
	scheduled sync.Map
}

// revocation is a token to revoke. It is only in memory, since a disconnected account's token is no longer stored.
type revocation struct {
	conn  *v1alpha1.Connection
	token credentials.Token
	since time.Time
}

// schedule remembers the token of an account that a user has disconnected, if the platform lets Herald revoke it.
func (r *tokenRevoker) schedule(ctx context.Context, conn *v1alpha1.Connection) {
	platform, ok := r.platforms[conn.Spec.Platform].(platforms.Revoker)
	if !ok {
		return
	}
	log := revocationLog(ctx, conn)
	found, err := r.store.Working(ctx, conn)
	if err != nil {
		if credentials.ReasonOf(err) != credentials.NotFound {
			log.Error(err, "the token of a disconnected account cannot be read, and so is not revoked")
		}
		return
	}
	if revocable, _ := platform.Revocable(platforms.Token(found.Token)); !revocable {
		return
	}
	// The first attempt to clean up counts: a later one may no longer find the token.
	if _, isScheduled := r.scheduled.LoadOrStore(conn.UID, revocation{conn, found.Token, r.clock.Now()}); !isScheduled {
		log.Info("the token of a disconnected account will be revoked, unless the manager is restarted before then", "in", revokeAfter.String())
	}
}

func revocationLog(ctx context.Context, conn *v1alpha1.Connection) logr.Logger {
	return ctrl.LoggerFrom(ctx).WithValues("namespace", conn.Namespace, "platform", conn.Spec.Platform, "account", conn.Spec.AccountID)
}

// sweep revokes the tokens that are due.
func (r *tokenRevoker) sweep() pacing.Sweep {
	do := func(ctx context.Context) error {
		r.revokeDue(ctx, r.clock.Now())
		return nil
	}
	return pacing.Sweep{Name: "connection-revocation", Do: do, First: revokeEvery, Every: revokeEvery, Within: pacing.SweepTimeout, Clock: r.clock}
}

func (r *tokenRevoker) revokeDue(ctx context.Context, now time.Time) {
	r.scheduled.Range(func(uid, value any) bool {
		if due, ok := value.(revocation); ok && now.Sub(due.since) >= revokeAfter {
			r.scheduled.Delete(uid)
			r.revoke(ctx, due)
		}
		return ctx.Err() == nil
	})
}

// revoke gives up Herald's access to a disconnected account. It makes one attempt: a server may be gone forever, and users
// can remove the app there.
func (r *tokenRevoker) revoke(ctx context.Context, due revocation) {
	platform, ok := r.platforms[due.conn.Spec.Platform].(platforms.Revoker)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pacing.ConnectionTimeout)
	defer cancel()
	log := revocationLog(ctx, due.conn)
	_, shared := platform.Revocable(platforms.Token(due.token))
	switch used, err := r.usedElsewhere(ctx, due, shared); {
	case err != nil:
		log.Error(err, "the token of a disconnected account is not revoked, since other connections may use it")
		return
	case used:
		log.Info("the token of a disconnected account is not revoked, since another connection uses the account")
		return
	}
	calling, cancelCall := context.WithTimeout(ctx, revokeTimeout)
	defer cancelCall()
	if err := platform.Revoke(calling, platforms.Token(due.token)); err != nil {
		log.Error(err, "the token of a disconnected account was not revoked; its owner can remove Herald from the authorized apps on the server")
		return
	}
	log.Info("the token of a disconnected account was revoked")
}

// usedElsewhere reports whether the token is in use: in the same namespace, where connections of an account share its
// tokens, or in any namespace if the platform has one token for all consents (Mastodon, config/initializers/doorkeeper.rb,
// reuse_access_token). A connection that never had access to the account does not count: anyone can create one, to
// prevent the revocation.
func (r *tokenRevoker) usedElsewhere(ctx context.Context, due revocation, shared bool) (bool, error) {
	namespaces := []string{due.conn.Namespace}
	if shared {
		if namespaces = r.namespaces; len(namespaces) == 0 {
			namespaces = []string{""} // all
		}
	}
	for _, namespace := range namespaces {
		var found v1alpha1.ConnectionList
		err := r.apiReader.List(ctx, &found, client.InNamespace(namespace),
			client.MatchingFields{"spec.platform": string(due.conn.Spec.Platform), "spec.accountID": due.conn.Spec.AccountID})
		if err != nil {
			return false, fmt.Errorf("cannot list the connections of the account: %w", err)
		}
		for i := range found.Items {
			if found.Items[i].UID != due.conn.UID && found.Items[i].Status.ConnectedAt != nil {
				return true, nil
			}
		}
	}
	return r.storedElsewhere(ctx, due)
}

// storedElsewhere reports whether a team's working copy contains the token. The copy may belong to a connection that
// has not yet been examined successfully, or to a deleted one that a tool may apply again.
func (r *tokenRevoker) storedElsewhere(ctx context.Context, due revocation) (bool, error) {
	var teams v1alpha1.TeamList
	if err := r.client.List(ctx, &teams); err != nil {
		return false, fmt.Errorf("cannot list teams: %w", err)
	}
	conn := due.conn.DeepCopy()
	for i := range teams.Items {
		if conn.Namespace = teams.Items[i].Spec.Namespace; !r.namespaces.Include(conn.Namespace) {
			continue
		}
		if owned, err := r.owned(ctx, conn.Namespace); err != nil {
			return false, err
		} else if !owned {
			continue
		}
		found, err := r.store.Working(ctx, conn)
		switch reason := credentials.ReasonOf(err); {
		case err == nil && found.Token.Access == due.token.Access:
			return true, nil
		case err != nil && reason != credentials.NotFound && reason != credentials.Invalid:
			return false, err
		}
	}
	return false, nil
}
