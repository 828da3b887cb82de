// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// Disconnected is the result of disconnecting an account.
type Disconnected struct {
	Connection *v1alpha1.Connection
	// Message explains what happens to the account's posts, and what remains for the user to do.
	Message string
}

// Disconnect removes a connection, and with it the credentials that Herald created. A Secret that a user created is not
// removed. This process cannot read the token, and so cannot revoke it. The manager tries to, where the platform permits
// it.
func (s *Service) Disconnect(ctx context.Context, v Visitor, namespace, name string) (Disconnected, error) {
	if err := v.May(ctx, namespace, Delete); err != nil {
		return Disconnected{}, err
	}
	found, err := s.find(ctx, namespace, name)
	if err != nil {
		return Disconnected{}, err
	}
	if found, err = s.remove(ctx, v.Person, found, func(*v1alpha1.Connection) bool { return true }); err != nil {
		return Disconnected{}, err
	}
	s.Log.InfoContext(ctx, "An account was disconnected", "person", v.Person, "namespace", namespace, "connection", name,
		"platform", found.Spec.Platform, "account", found.Spec.AccountID)
	return Disconnected{Connection: found, Message: "The account is disconnected. Its posts wait and fail an hour after their time, " +
		"unless the same account is connected again. Posts that are being sent are completed; if a response is lost, Herald asks you whether the post " +
		"is online. Published posts stay online. " + s.remainingAccess(found)}, nil
}

// remainingAccess explains what happens to Herald's access to a disconnected account. On a platform that also has app
// passwords, only OAuth tokens expire.
func (s *Service) remainingAccess(c *v1alpha1.Connection) string {
	platform := c.Spec.Platform.Title()
	_, made := c.Annotations[v1alpha1.MadeSecretPrefix+c.Spec.CredentialsSecretRef.Name]
	_, passwords := s.AppPasswords(c.Spec.Platform)
	switch {
	case made && s.NeedsServer(c.Spec.Platform):
		return fmt.Sprintf("In a few minutes, Herald asks %s once to revoke its access, unless the account is connected again or another team uses it. "+
			"To be certain, check the authorized apps in the account's settings there, and remove Herald if it is listed.", hostOf(c.Spec.Server))
	case passwords && c.Status.TokenExpiresAt != nil && !s.NeedsHandle(c.Spec.Platform):
		return "To revoke Herald's access as well, remove it from the connected apps in the account's settings."
	case passwords && c.Status.TokenExpiresAt != nil:
		return "In a few minutes, Herald asks the account's server once to revoke its access, unless the team connects the account again. " +
			"To be certain, check the connected apps in the account's settings there, and remove Herald if it is listed."
	case passwords:
		return "The app password remains valid: delete it in the account's settings on " + platform + "."
	default:
		return "To revoke Herald's access as well, remove it from the apps in the account's settings on " + platform + "."
	}
}

// remove removes a connection on behalf of a user. After a conflict, for example with one of the manager's status
// updates, it reads the connection again. It keeps a different connection with the same name, and a changed connection
// unless goes returns true.
func (s *Service) remove(
	ctx context.Context, person string, found *v1alpha1.Connection, goes func(live *v1alpha1.Connection) bool,
) (*v1alpha1.Connection, error) {
	for range maxConflicts {
		err := s.Connections.DeleteFor(ctx, found, person, s.Clock.Now())
		if err == nil || apierrors.IsNotFound(err) {
			return found, nil
		}
		if !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("remove connection %q: %w", found.Name, err)
		}
		live, err := s.Connections.Live(ctx, found.Namespace, found.Name)
		switch {
		case apierrors.IsNotFound(err), err == nil && (live.UID != found.UID || !goes(live)):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("read connection %q again: %w", found.Name, err)
		}
		found = live
	}
	return nil, refusef(bridge.CodeConflict, "nothing was disconnected: connection %q keeps changing; try again in a moment", found.Name)
}
