// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"net/url"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

const (
	scopeUpload = "https://www.googleapis.com/auth/youtube.upload"
	scopeRead   = "https://www.googleapis.com/auth/youtube.readonly"
	scopeAll    = "https://www.googleapis.com/auth/youtube"
)

// requiredScopes are the scopes for uploading and for lookups. Users can decline individual scopes on the consent page.
var requiredScopes = oauth2.RequiredScopes{{scopeUpload, scopeAll}, {scopeRead, scopeAll}}

// dialog requests consent each time. Otherwise, Google would return a refresh token only for a user's first connection
// ("Using OAuth 2.0 for Web Server Applications", access_type and prompt).
func dialog(c *Config) oauth2.Dialog {
	return oauth2.Dialog{
		Name: v1alpha1.PlatformYouTube.Title(), Setting: "youtube", URL: client.Address(c.AuthorizeURL, DefaultAuthorizeURL) + "/o/oauth2/v2/auth",
		AppParam: "client_id", App: c.ClientID, Challenge: oauth2.S256, Scopes: []string{scopeUpload, scopeRead},
		Extra: url.Values{"access_type": {"offline"}, "prompt": {"consent"}},
	}
}
