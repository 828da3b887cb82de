// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Disconnected is what follows from a disconnection.
type Disconnected struct {
	Connection *v1alpha1.Connection
	// Message says what becomes of the account's posts, and what is left for the
	// person to do.
	Message string
}

// Disconnect removes a connection, and with it the credentials that Herald made. A
// Secret that people made stays theirs. Herald cannot withdraw the access on the
// platform, since it cannot read the token here.
func (s *Service) Disconnect(ctx context.Context, v Visitor, namespace, name string) (Disconnected, error) {
	if err := v.May(ctx, namespace, Delete); err != nil {
		return Disconnected{}, err
	}
	found, err := s.find(ctx, namespace, name)
	if err != nil {
		return Disconnected{}, err
	}
	if err := s.Connections.Delete(ctx, found); err != nil && !apierrors.IsNotFound(err) {
		return Disconnected{}, fmt.Errorf("remove connection %q: %w", name, err)
	}
	s.Log.InfoContext(ctx, "An account was disconnected", "person", v.Person, "namespace", namespace, "connection", name,
		"platform", found.Spec.Platform, "account", found.Spec.AccountID)
	return Disconnected{Connection: found, Message: fmt.Sprintf("The account is disconnected. Its posts wait until an hour after their time and fail then, "+
		"unless the same account is connected again. What is being sent at this moment is finished; if its answer is lost, you are asked whether it "+
		"is online. What is online stays. "+
		"To withdraw Herald's access as well, remove it among the apps in the account's settings on %s.", found.Spec.Platform.Title())}, nil
}
