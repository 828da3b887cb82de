// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"context"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

var _ platforms.Connector = (*Platform)(nil)

// requiredScopes are the scopes for publishing, looking up and renewing (X, "OAuth 2.0 Authorization Code Flow with
// PKCE").
var requiredScopes = oauth2.RequiredScopes{{"tweet.read"}, {"tweet.write"}, {"users.read"}, {"media.write"}, {"offline.access"}}

func (c *Config) dialog() oauth2.Dialog {
	return oauth2.Dialog{
		Name: v1alpha1.PlatformX.Title(), Setting: "x", URL: client.Address(c.AuthorizeURL, DefaultAuthorizeURL) + "/i/oauth2/authorize",
		AppParam: "client_id", App: c.ClientID, Challenge: oauth2.S256,
		Scopes: []string{"tweet.read", "tweet.write", "users.read", "media.write", "offline.access"},
	}
}

// ConsentURL returns the address of X's consent page.
func (p *Platform) ConsentURL(consent platforms.Consent) (string, error) {
	return p.dialog.ConsentURL(consent)
}

// Exchange exchanges a code for a token. X's codes are valid for 30 seconds.
func (p *Platform) Exchange(ctx context.Context, code platforms.Code) (platforms.Token, error) {
	return p.tokens.Exchange(ctx, code, p.dialog.Requested(), requiredScopes)
}

// Choices returns the one account of a token.
func (p *Platform) Choices(ctx context.Context, token platforms.Token) ([]platforms.Choice, error) {
	return platforms.OneChoice(ctx, p, token)
}
