// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

// requiredScopes are the scopes for posting and for lookups (TikTok, "Scopes Overview"). An account that grants only
// the scope for drafts accepts nothing else.
var requiredScopes = oauth2.RequiredScopes{{"user.info.basic"}, {scopeDirectPost, "video.upload"}, {"video.list"}}

// dialog returns TikTok's consent page. It uses the hexadecimal PKCE challenge of "Login Kit for Desktop". "Login Kit
// for Web" documents neither that a challenge is supported nor that it is rejected; reports from other clients differ
// (better-auth#3114, passport-tiktok#9), and no test against TikTok was possible. The challenge is kept because it
// binds a code to its authorization request (RFC 9700, section 2.1.1).
func dialog(c *Config) oauth2.Dialog {
	return oauth2.Dialog{
		Name: v1alpha1.PlatformTikTok.Title(), Setting: "tiktok", URL: client.Address(c.AuthorizeURL, DefaultAuthorizeURL) + "/v2/auth/authorize/",
		AppParam: "client_key", App: c.ClientID, Challenge: oauth2.S256Hex, Separator: ",",
		Scopes: []string{"user.info.basic", scopeProfile, scopeDirectPost, "video.upload", "video.list"},
	}
}
