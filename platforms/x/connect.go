// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

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
