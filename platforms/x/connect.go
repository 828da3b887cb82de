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

// dialog returns X's consent page. X's codes are valid for 30 seconds.
func dialog(c *Config) oauth2.Dialog {
	return oauth2.Dialog{
		Name: v1alpha1.PlatformX.Title(), Setting: "x", URL: client.Address(c.AuthorizeURL, DefaultAuthorizeURL) + "/i/oauth2/authorize",
		AppParam: "client_id", App: c.ClientID, Challenge: oauth2.S256,
		Scopes: []string{"tweet.read", "tweet.write", "users.read", "media.write", "offline.access"},
	}
}

// Choices returns the one account that a token belongs to.
func (p *Platform) Choices(ctx context.Context, token platforms.Token) ([]platforms.Choice, error) {
	return platforms.OneChoice(ctx, p, token)
}
