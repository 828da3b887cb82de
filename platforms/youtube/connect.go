// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"net/url"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

var _ platforms.Connector = (*Platform)(nil)

const (
	scopeUpload = "https://www.googleapis.com/auth/youtube.upload"
	scopeRead   = "https://www.googleapis.com/auth/youtube.readonly"
	scopeAll    = "https://www.googleapis.com/auth/youtube"
)

// requiredScopes are the scopes without which nothing can be uploaded or looked up. On
// Google's page people can switch off single ones.
var requiredScopes = oauth2.RequiredScopes{{scopeUpload, scopeAll}, {scopeRead, scopeAll}}

// dialog asks for consent each time: without it, Google gives a refresh token only
// to the first of a person's connections ("Using OAuth 2.0 for Web Server
// Applications", access_type and prompt).
func (c *Config) dialog() oauth2.Dialog {
	return oauth2.Dialog{
		Name: v1alpha1.PlatformYouTube.Title(), Setting: "youtube", URL: client.Address(c.AuthorizeURL, DefaultAuthorizeURL) + "/o/oauth2/v2/auth",
		AppParam: "client_id", App: c.ClientID, Challenge: oauth2.S256, Scopes: []string{scopeUpload, scopeRead},
		Extra: url.Values{"access_type": {"offline"}, "prompt": {"consent"}},
	}
}

// ConsentURL returns the address of Google's page of consent. People choose their
// channel there.
func (p *Platform) ConsentURL(consent platforms.Consent) (string, error) {
	return p.dialog.ConsentURL(consent)
}

// Exchange turns a code into a token.
func (p *Platform) Exchange(ctx context.Context, code platforms.Code) (platforms.Token, error) {
	return p.tokens.Exchange(ctx, code, p.dialog.Requested(), requiredScopes)
}

// Choices returns the one channel that a token is for.
func (p *Platform) Choices(ctx context.Context, token platforms.Token) ([]platforms.Choice, error) {
	return platforms.OneChoice(ctx, p, token)
}
