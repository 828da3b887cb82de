// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

var _ platforms.Connector = (*Platform)(nil)

// requiredScopes are the scopes without which nothing can be posted or looked up (TikTok,
// "Scopes Overview"). An account that grants drafts alone takes drafts.
var requiredScopes = oauth2.RequiredScopes{{"user.info.basic"}, {scopeDirectPost, "video.upload"}, {"video.list"}}

// dialog shows TikTok the hash of a secret in hex, which is the form of "Login Kit for
// Desktop". "Login Kit for Web" names no challenge and does not say that it refuses
// one; clients report both (better-auth#3114, passport-tiktok#9), and none of it could
// be tried here. The hash stays, since it binds a code to the attempt that asked for it
// (RFC 9700, section 2.1.1).
func (c *Config) dialog() oauth2.Dialog {
	return oauth2.Dialog{
		Name: v1alpha1.PlatformTikTok.Title(), Setting: "tiktok", URL: client.Address(c.AuthorizeURL, DefaultAuthorizeURL) + "/v2/auth/authorize/",
		AppParam: "client_key", App: c.ClientKey, Challenge: oauth2.S256Hex, Separator: ",",
		Scopes: []string{"user.info.basic", scopeProfile, scopeDirectPost, "video.upload", "video.list"},
	}
}

// ConsentURL returns the address of TikTok's page of consent.
func (p *Platform) ConsentURL(consent platforms.Consent) (string, error) {
	return p.dialog.ConsentURL(consent)
}

// Exchange turns a code into a token.
func (p *Platform) Exchange(ctx context.Context, code platforms.Code) (platforms.Token, error) {
	return p.tokens.Exchange(ctx, code, p.dialog.Requested(), requiredScopes)
}

// Choices returns the one account that a token is for.
func (p *Platform) Choices(ctx context.Context, token platforms.Token) ([]platforms.Choice, error) {
	return platforms.OneChoice(ctx, p, token)
}
