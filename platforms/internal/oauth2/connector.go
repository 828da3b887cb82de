// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth2

import (
	"context"
	"net/url"

	"github.com/herald-social/herald/platforms"
)

// Connector connects the accounts of a platform with a token endpoint, and renews their tokens.
type Connector struct {
	Dialog Dialog
	Tokens Endpoint
	// Required are the scopes that an account must grant to be connected.
	Required RequiredScopes
}

// ConsentURL returns the address of the consent page.
func (c *Connector) ConsentURL(consent platforms.Consent) (string, error) {
	return c.Dialog.ConsentURL(consent)
}

// Exchange exchanges a code for a token.
func (c *Connector) Exchange(ctx context.Context, code platforms.Code) (platforms.Token, error) {
	return c.Tokens.Exchange(ctx, code, c.Dialog.Requested(), c.Required)
}

// Refresh renews the access token. TikTok and X return a new refresh token each time, which invalidates the old one;
// Google keeps it.
func (c *Connector) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	return c.Tokens.Refresh(ctx, token)
}

// FormApp returns a function for Endpoint.App. It sends the app's id, in the parameter idParam, and its secret in the
// form.
func FormApp(c *platforms.Config, idParam string) func() App {
	return func() App {
		form := url.Values{idParam: {c.ClientID}}
		if c.ClientSecret != nil {
			form.Set("client_secret", c.ClientSecret())
		}
		return App{Form: form}
	}
}
