// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

// instagramScopes and facebookScopes are the permissions required for publishing with each of the two logins (Instagram
// Platform, "Content Publishing").
var (
	instagramScopes = oauth2.RequiredScopes{{"instagram_business_basic"}, {"instagram_business_content_publish"}}
	facebookScopes  = oauth2.RequiredScopes{{"instagram_basic"}, {"instagram_content_publish"}, {"pages_read_engagement"}, {"pages_show_list"}}
)

// dialog returns the consent page of the configured login. Instagram's consent page would otherwise also offer Facebook
// Login, whose tokens it does not return.
func (c *Config) dialog() oauth2.Dialog {
	d := oauth2.Dialog{Name: v1alpha1.PlatformInstagram.Title(), Setting: "instagram", AppParam: "client_id", App: c.ClientID, Separator: ","}
	if c.Login == FacebookLogin {
		d.URL = client.Address(c.AuthorizeURL, DefaultFacebookAuthorizeURL) + "/" + c.Version + "/dialog/oauth"
		d.Scopes = []string{"instagram_basic", "instagram_content_publish", "pages_read_engagement", "pages_show_list"}
		meta.LoginForBusiness(&d, c.LoginConfigID)
		return d
	}
	d.URL = client.Address(c.AuthorizeURL, DefaultAuthorizeURL) + "/oauth/authorize"
	d.Scopes = []string{"instagram_business_basic", "instagram_business_content_publish"}
	d.Extra = url.Values{"enable_fb_login": {"0"}}
	return d
}

// Exchange exchanges a code for a token that is valid for 60 days: the account's token or, with Facebook Login, the
// user's token.
func (p *Platform) Exchange(ctx context.Context, code platforms.Code) (platforms.Token, error) {
	if p.config.Login == FacebookLogin {
		return p.linked.ExchangeForPerson(ctx, &meta.Login{ID: p.config.ClientID, Secret: p.config.Secret}, code, facebookScopes)
	}
	login := meta.Login{Tokens: &p.codes, ID: p.config.ClientID, Secret: p.config.Secret}
	short, err := p.own.ExchangeCode(ctx, &login, code)
	if err != nil {
		return platforms.Token{}, err
	}
	// A response without permissions means that the requested ones were granted.
	granted := cmp.Or(strings.Join(short.Permissions, " "), p.Requested())
	if missing := instagramScopes.Check("Instagram", granted); missing != nil {
		return platforms.Token{}, missing
	}
	return p.own.ExtendToken(ctx, &login, short.Access.String(), "ig_exchange_token", granted)
}

// Choices returns the account that a token of Instagram's own login belongs to. With Facebook's login it returns the
// accounts linked to the user's Pages, with the Page tokens.
func (p *Platform) Choices(ctx context.Context, token platforms.Token) ([]platforms.Choice, error) {
	if p.config.Login != FacebookLogin {
		return platforms.OneChoice(ctx, p, token)
	}
	pages, _, err := p.linked.Pages(ctx, token, linkedFields+",access_token,tasks")
	if err != nil {
		return nil, err
	}
	return p.linked.Choices(pages, token, func(page *meta.Page) *meta.Account {
		if !page.Instagram.Present {
			return nil
		}
		return &page.Instagram.Value
	}, new(noneLinked))
}

// noneLinked is the error for a user who has no account to choose from.
var noneLinked = platforms.NewError(platforms.ClassReconnect, "",
	"no professional account of Instagram is linked to a Facebook Page that this person may create content on", "link one on Facebook, and connect the account again")
