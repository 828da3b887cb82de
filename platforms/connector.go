// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import "context"

// Connector is a Platform whose accounts a person can connect: they go to a page
// of the platform, agree there, and come back with a code (RFC 6749, section 4.1).
//
// Errors are *Error. None of them holds a code, a token or a secret, and no call
// is made twice.
type Connector interface {
	Platform

	// ConsentURL returns the address of the page on which a person lets Herald's
	// app into an account. The error says that there is no app.
	ConsentURL(consent Consent) (string, error)

	// Exchange turns the code with which the person came back into a token that
	// lasts, and checks what they agreed to: ClassReconnect names the scopes that
	// are missing. A code is good for one exchange.
	Exchange(ctx context.Context, code Code) (Token, error)

	// Choices returns the accounts that a token of Exchange reaches, one or more,
	// each with the token that is good for it.
	Choices(ctx context.Context, token Token) ([]Choice, error)
}

// Consent is what a person is sent to a platform with.
type Consent struct {
	// RedirectURI is where they come back to. The app has to list it there.
	RedirectURI string
	// State comes back with them, as it is. X takes up to 500 characters.
	State string
	// Verifier is the secret of PKCE (RFC 7636): 43 to 128 letters, digits and
	// "-._~". The platform is shown its hash, if it knows PKCE.
	Verifier string
}

// Code is what a person came back with.
type Code struct {
	// Value is the parameter "code". Never logged.
	Value string
	// RedirectURI and Verifier are those of the Consent.
	RedirectURI, Verifier string
}

// Choice is an account that a person may connect.
type Choice struct {
	Identity Identity
	Token    Token
}

// OneChoice is Choices on a platform whose tokens are for one account.
func OneChoice(ctx context.Context, accounts Accounts, token Token) ([]Choice, error) {
	identity, err := accounts.Identify(ctx, token)
	if err != nil {
		return nil, err
	}
	return []Choice{{Identity: identity, Token: token}}, nil
}
