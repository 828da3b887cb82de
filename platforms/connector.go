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

	// Exchange exchanges the authorization code for a long-lived token and checks the granted scopes. If scopes are
	// missing, a ClassReconnect error lists them. A code can be exchanged only once.
	Exchange(ctx context.Context, code Code) (Token, error)

	// Choices returns the accounts that a token from Exchange can access, each with its own token. There is at least
	// one.
	Choices(ctx context.Context, token Token) ([]Choice, error)
}

// ServerConnector is a Platform whose users choose their account's server and connect the account by OAuth. Herald
// registers an app on each server.
type ServerConnector interface {
	Platform

	// ServerURL converts user input to the server's address, as in spec.server of a Connection. It makes no calls.
	// An error is an *Error for the user.
	ServerURL(typed string) (string, error)

	// Register returns Herald's app on a server: the known app if it is registered for this site and the server
	// still accepts it, and otherwise a new one. known may be zero. Errors are *Error and never contain a secret.
	Register(ctx context.Context, server string, site Site, known ServerApp) (ServerApp, error)

	// On returns the Connector for a server on which Herald has an app.
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
	// RedirectURI and Scopes are the ones that the app is registered with.
	RedirectURI string `json:"redirect"`
	Scopes      string `json:"scopes"`
	// PKCE reports whether the server supports S256 code challenges. Without it, Consent and Code have no verifier.
	PKCE bool `json:"pkce,omitempty"`
}

// HandleConnector is a Platform whose accounts are connected by OAuth on a server that is looked up from the account's
// handle.
type HandleConnector interface {
	Platform

	// ClientDocument returns the document that identifies the installation to servers. The site serves it at the
	// client id, which is its address. An error means that no key is configured.
	ClientDocument(site Site) ([]byte, error)

	// Begin requests consent for the account with the given handle, and returns the address of the consent page.
	// begun is a secret to pass to Finish. Errors are *Error.
	Begin(ctx context.Context, handle string, consent Consent) (address, begun string, err error)

	// Finish exchanges the authorization code and returns the account. issuer is the callback's "iss" parameter.
	// Errors are *Error.
	Finish(ctx context.Context, begun string, code Code, issuer string) (Choice, error)
}

// Revoker is a Platform that can revoke an account's token.
type Revoker interface {
	// Revocable reports whether Herald can revoke a token, and whether all consents for an account share one token.
	Revocable(token Token) (ok, shared bool)

	// Revoke invalidates a token that is Revocable. Errors are *Error. An already invalid token is not an error.
	Revoke(ctx context.Context, token Token) error
}

// PasswordConnector is a Platform whose accounts are connected by an app password: an additional password that the
// account's owner creates for a program and can revoke.
type PasswordConnector interface {
	Platform

	// AppPasswords returns the address of the page where users create an app password.
	AppPasswords() string

	// PasswordToken returns the token for an account and an app password. name is the account's handle or id, as
	// typed or from Identify. It makes no calls; Identify checks the password. An error is an *Error for the user
	// who typed the password.
	PasswordToken(name, password string) (Token, error)
}

// Consent holds the parameters of a consent request.
type Consent struct {
	// RedirectURI is the callback address. It must be registered with the app.
	RedirectURI string
	// State is returned unchanged. X allows up to 500 characters.
	State string
	// Verifier is the PKCE code verifier (RFC 7636): 43 to 128 letters, digits and "-._~". Platforms that support
	// PKCE receive its hash. It is empty if the server does not support PKCE.
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
