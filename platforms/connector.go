// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import "context"

// Connector is a Platform whose accounts can be connected by OAuth: the user consents on one of the platform's pages
// and returns with an authorization code (RFC 6749, section 4.1).
//
// Errors are *Error and never contain a code, token or secret. No call is retried.
type Connector interface {
	Platform

	// ConsentURL returns the address of the consent page. It returns an error if no app is configured.
	ConsentURL(consent Consent) (string, error)

	// Exchange exchanges the authorization code for a long-lived token and checks the granted scopes. A ClassReconnect
	// error lists the missing ones. A code can be exchanged only once.
	Exchange(ctx context.Context, code Code) (Token, error)

	// Choices returns the accounts that a token from Exchange can access, each with its own token. There is at least
	// one.
	Choices(ctx context.Context, token Token) ([]Choice, error)
}

// PasswordConnector is a Platform whose accounts are connected by an app password: one of several passwords of an account,
// which its owner creates for a program and can revoke.
type PasswordConnector interface {
	Platform

	// AppPasswords returns the address of the page where users create an app password.
	AppPasswords() string

	// PasswordToken returns the token for an account and an app password. name is the account's handle or id, as typed or
	// from Identify. It calls nothing: Identify then checks the password. An error is an *Error for the user who typed it.
	PasswordToken(name, password string) (Token, error)
}

// Consent holds the parameters of a consent request.
type Consent struct {
	// RedirectURI is the callback address. It must be registered with the app.
	RedirectURI string
	// State is returned unchanged. X allows up to 500 characters.
	State string
	// Verifier is the PKCE code verifier (RFC 7636): 43 to 128 letters, digits and "-._~". Platforms that support PKCE
	// receive its hash.
	Verifier string
}

// Code is the result of a consent.
type Code struct {
	// Value is the "code" parameter. It is never logged.
	Value string
	// RedirectURI and Verifier are copied from the Consent.
	RedirectURI, Verifier string
}

// Choice is an account that the user may connect.
type Choice struct {
	Identity Identity
	Token    Token
}

// OneChoice implements Choices for platforms whose tokens belong to a single account.
func OneChoice(ctx context.Context, accounts Accounts, token Token) ([]Choice, error) {
	identity, err := accounts.Identify(ctx, token)
	if err != nil {
		return nil, err
	}
	return []Choice{{Identity: identity, Token: token}}, nil
}
