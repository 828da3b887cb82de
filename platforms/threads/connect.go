// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"net/url"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

// requiredScopes are the scopes for publishing and for looking up the replies in trees (Threads API, "Get Started",
// Authorization).
var requiredScopes = oauth2.RequiredScopes{{"threads_basic"}, {"threads_content_publish"}, {"threads_manage_replies"}, {"threads_read_replies"}}

func (c *Config) dialog() oauth2.Dialog {
	return oauth2.Dialog{
		Name: v1alpha1.PlatformThreads.Title(), Setting: "threads", URL: client.Address(c.AuthorizeURL, DefaultAuthorizeURL) + "/oauth/authorize",
		AppParam: "client_id", App: c.ClientID, Separator: ",",
		Scopes: []string{"threads_basic", "threads_content_publish", "threads_manage_replies", "threads_read_replies"},
	}
}

// Exchange exchanges a code for a token that is valid for 60 days.
func (p *Platform) Exchange(ctx context.Context, code platforms.Code) (platforms.Token, error) {
	login := meta.Login{Tokens: &p.graph.Client, ID: p.App, Secret: p.secret}
	short, err := p.graph.ExchangeCode(ctx, &login, code)
	if err != nil {
		return platforms.Token{}, err
	}
	granted := p.grantedScopes(ctx, short.Access.String())
	if granted != "" {
		if missing := requiredScopes.Check("Threads", granted); missing != nil {
			return platforms.Token{}, missing
		}
	}
	return p.graph.ExtendToken(ctx, &login, short.Access.String(), "th_exchange_token", granted)
}

// grantedScopes returns a token's scopes, or "" if Threads does not return them. It returns them only for an app's
// testers ("Debug Access Token").
func (p *Platform) grantedScopes(ctx context.Context, access string) string {
	doc, bad := meta.Get[struct {
		Data struct {
			Scopes meta.Permissions `json:"scopes"`
		} `json:"data"`
	}](ctx, &p.graph.Graph, "identify", "/debug_token?"+url.Values{"input_token": {access}}.Encode(), platforms.Token{Access: access})
	if bad != nil {
		return ""
	}
	return strings.Join(doc.Data.Scopes, " ")
}

// Choices returns the one profile that a token belongs to.
func (p *Platform) Choices(ctx context.Context, token platforms.Token) ([]platforms.Choice, error) {
	return platforms.OneChoice(ctx, p, token)
}
