// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// Credentials are what a user types to connect an account with an app password.
type Credentials struct {
	Platform v1alpha1.Platform
	// Name is the account's handle. Password is never logged.
	Name, Password string
	// Reconnect is the name of the connection to renew; empty to connect any account.
	Reconnect string
}

// AppPasswords returns the address of the page where users create an app password; ok is false if this installation
// does not connect the platform's accounts with app passwords.
func (s *Service) AppPasswords(platform v1alpha1.Platform) (address string, ok bool) {
	connector, ok := s.Platforms[platform].(platforms.PasswordConnector)
	if !ok {
		return "", false
	}
	return connector.AppPasswords(), true
}

// ConnectPassword connects an account with an app password. There is no flow: the password is checked at once, and
// stored in a Secret like a token.
func (s *Service) ConnectPassword(ctx context.Context, v Visitor, namespace string, typed *Credentials) (Outcome, error) {
	f := &flow{Session: v.Session, Person: v.Person, Space: namespace, Platform: typed.Platform, Reconnect: typed.Reconnect}
	if err := v.May(ctx, namespace, f.verb()); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Namespace: namespace}
	connector, ok := s.Platforms[typed.Platform].(platforms.PasswordConnector)
	if !ok {
		return out, notHere(typed.Platform)
	}
	token, err := connector.PasswordToken(typed.Name, typed.Password)
	if err != nil {
		return out, s.explain(ctx, f, err)
	}
	if f.Reconnect == "" {
		if err := s.requireRoom(namespace); err != nil {
			return out, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	identity, err := connector.Identify(ctx, token)
	if err != nil {
		return out, s.explain(ctx, f, err)
	}
	// A handle can change, but an id cannot.
	if token, err = connector.PasswordToken(identity.AccountID, typed.Password); err != nil {
		return out, s.explain(ctx, f, err)
	}
	out.Connection, out.Renewed, err = s.connect(ctx, v, f, []platforms.Choice{{Identity: identity, Token: token}})
	return out, err
}
