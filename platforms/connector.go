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

// ServerConnector is a Platform whose users choose their account's server, and connect accounts by OAuth. Herald registers
// an app on each server.
type ServerConnector interface {
	Platform

	// ServerURL returns the server's address, as in spec.server of a Connection, for what a user typed. It calls nothing. An
	// error is an *Error for the user.
	ServerURL(typed string) (string, error)

	// Register returns Herald's app on a server: the known one if it is registered for this site and the server still accepts
	// it, otherwise a new one. known may be zero. Errors are *Error and never contain a secret.
	Register(ctx context.Context, server string, site Site, known ServerApp) (ServerApp, error)

	// On returns the Connector of a server, with Herald's app there.
	On(server string, app ServerApp) Connector
}

// Site is the installation for which an app is registered.
type Site struct {
	// URL is the site's address, which servers show to users. RedirectURI is as in Consent.
	URL, RedirectURI string
}

// ServerApp is Herald's app on one server.
type ServerApp struct {
	ClientID     string `json:"id"`
	ClientSecret string `json:"secret"`
	// RedirectURI and Scopes are those that the app is registered with.
	RedirectURI string `json:"redirect"`
	Scopes      string `json:"scopes"`
	// PKCE reports that the server supports S256 code challenges. Without it, Consent and Code have no verifier.
	PKCE bool `json:"pkce,omitempty"`
}

// HandleConnector is a Platform whose accounts are connected by OAuth on a server that follows from the account's handle.
type HandleConnector interface {
	Platform

	// ClientDocument returns the document that identifies the installation to servers, which the site serves at the client's
	// id. It returns an error if there is no key for it.
	ClientDocument(site Site) ([]byte, error)

	// Begin requests a consent for the account with a handle, and returns the address of its page. begun is the secret that
	// Finish needs. Errors are *Error.
	Begin(ctx context.Context, handle string, consent Consent) (address, begun string, err error)

	// Finish exchanges the code of a consent and returns the account. issuer is the parameter "iss" of the callback. Errors
	// are *Error.
	Finish(ctx context.Context, begun string, code Code, issuer string) (Choice, error)
}

// Revoker is a Platform that can revoke a token of an account.
type Revoker interface {
	// Revocable reports whether Herald can revoke a token, and whether the platform has one token for all consents to an
	// account.
	Revocable(token Token) (ok, shared bool)

	// Revoke invalidates a token that is Revocable. An error is an *Error. A token that is already invalid is no error.
	Revoke(ctx context.Context, token Token) error
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
	// receive its hash. It is empty for a server without PKCE.
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
