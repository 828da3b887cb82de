// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

// requiredScopes are the permissions needed to choose, post to and read a Page (Pages API, "Posts").
var requiredScopes = oauth2.RequiredScopes{{"pages_show_list"}, {"pages_manage_posts"}, {"pages_read_engagement"}}

func (c *Config) dialog() oauth2.Dialog {
	d := oauth2.Dialog{
		Name: v1alpha1.PlatformFacebook.Title(), Setting: "facebook", URL: client.Address(c.AuthorizeURL, DefaultAuthorizeURL) + "/" + c.Version + "/dialog/oauth",
		AppParam: "client_id", App: c.ClientID, Separator: ",",
		Scopes: []string{"pages_show_list", "pages_manage_posts", "pages_read_engagement"},
	}
	meta.LoginForBusiness(&d, c.LoginConfigID)
	return d
}

// Exchange exchanges a code for a user's long-lived token. The Page tokens that Choices derives from it do not
// expire.
func (p *Platform) Exchange(ctx context.Context, code platforms.Code) (platforms.Token, error) {
	return p.graph.ExchangeForPerson(ctx, &meta.Login{ID: p.App, Secret: p.secret}, code, requiredScopes)
}

// Choices returns the Pages that the user may post to.
func (p *Platform) Choices(ctx context.Context, token platforms.Token) ([]platforms.Choice, error) {
	pages, readOnly, err := p.graph.Pages(ctx, token, "id,name,username,access_token,tasks,picture{url}")
	if err != nil {
		return nil, err
	}
	return p.graph.Choices(pages, token, func(page *meta.Page) *meta.Account { return &page.Account }, noPages(readOnly))
}

// noPages returns the error for a user who has no Page to choose from.
func noPages(readOnly int) *platforms.Error {
	if readOnly > 0 {
		return platforms.Errorf(platforms.ClassReconnect, "this user may not create content on any of their Pages (Facebook lists %d)", readOnly).
			Advise("have an administrator of the Page assign them the content creation task, and connect it again")
	}
	return platforms.Errorf(platforms.ClassReconnect, "Facebook does not show Herald any Page of this user; Herald cannot post to personal profiles").
		Advise("connect again, and choose a Page that you manage when Facebook asks which ones Herald may use")
}
