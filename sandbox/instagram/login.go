// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"net/http"
	"slices"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// The paths of the two hosts of Instagram's API. The platform's own path is the host of Instagram Login,
// graph.instagram.com.
const (
	instagramBase = "/" + Name
	facebookBase  = instagramBase + "/graph.facebook.com"
)

// The permissions of Instagram Login that a publisher uses.
const (
	scopeBasic   = "instagram_business_basic"
	scopePublish = "instagram_business_content_publish"
)

// The permissions of Facebook Login that a publisher uses.
const (
	scopeFacebookBasic   = "instagram_basic"
	scopeFacebookPublish = "instagram_content_publish"
	scopePageRead        = "pages_read_engagement"
	scopePageList        = "pages_show_list"
)

func facebookScopes() []string {
	return []string{scopeFacebookBasic, scopeFacebookPublish, scopePageRead, scopePageList}
}

// login is a login flow's API: a host with its own tokens and permissions, and the same edges.
type login struct {
	*graph.API
	// base is the path of the host.
	base string
	// linked means that accounts are reached through their linked Facebook Page.
	linked bool
	// read and write are the permissions for reading and publishing.
	read, write []string
}

func instagramLogin(opts simulator.Options) *login {
	return &login{
		API: &graph.API{
			Options: opts, Profile: profile, Newest: graph.NewestVersion, ParamType: "IGApiException", PermissionCode: 10, Speaks: ofInstagram,
			Limit: graph.Limit{
				Status: http.StatusBadRequest, Code: 17, Message: "(#17) User request limit reached", Usage: Name,
			},
			Block: graph.SpamBlock(),
		},
		base: instagramBase, read: []string{scopeBasic}, write: []string{scopeBasic, scopePublish},
	}
}

func facebookLogin(opts simulator.Options) *login {
	return &login{
		API: &graph.API{
			Options: opts, Profile: profile, Newest: graph.NewestVersion, ParamType: "OAuthException", PermissionCode: 10,
			Speaks: func(b state.Bearer) bool { return !ofInstagram(b) },
			Limit: graph.Limit{
				Status: http.StatusBadRequest, Code: 80002, Message: "(#80002) There have been too many calls to this Instagram account.",
				Usage: Name,
			},
			Block: graph.SpamBlock(),
		},
		base: facebookBase, linked: true,
		read:  []string{scopeFacebookBasic, scopePageRead},
		write: []string{scopeFacebookBasic, scopeFacebookPublish, scopePageRead},
	}
}

// ofInstagram reports whether a token is from Instagram Login and not from Facebook Login. The permissions have
// different names, and neither host accepts tokens of the other.
func ofInstagram(b state.Bearer) bool {
	return slices.ContainsFunc(b.Scopes, func(scope string) bool { return strings.HasPrefix(scope, "instagram_business_") })
}

// register adds the edges to the API's own mux.
func (l *login) register(api *http.ServeMux) {
	api.Handle("GET "+l.base+"/{version}/{id}", l.ByID(
		l.Route(faults.Identity, l.me), l.Route(faults.Identity, l.user), l.Route(opRead, l.readMedia), l.Route(faults.Status, l.status),
	))
	if l.linked {
		api.Handle("GET "+l.base+"/{version}/me/accounts", l.Route(faults.Identity, l.pages))
		l.RegisterFacebookLogin(api, l.base, l.NewDialog(func(a state.Account) bool { return a.Login == state.FacebookLogin }))
	}
	api.Handle("DELETE "+l.base+"/{version}/{id}", l.Route(graph.OpDelete, l.remove))
	api.Handle("POST "+l.base+"/{version}/{id}/media", l.Route(faults.Create, l.create))
	api.Handle("POST "+l.base+"/{version}/{id}/media_publish", l.Route(faults.Publish, l.publish))
	api.Handle("GET "+l.base+"/{version}/{id}/media", l.Route(faults.List, l.list))
	api.Handle("GET "+l.base+"/{version}/{id}/content_publishing_limit", l.Route(opLimit, l.limit))
	api.HandleFunc("/", l.Refuse)
}

// owner returns the path's account, whose token must have the permissions. With a linked Page, me is the Page and never the account.
func (l *login) owner(c *graph.Call, scopes []string) (state.Account, *graph.Error) {
	account, bad := c.Owner(scopes...)
	if bad == nil && l.linked && c.PathValue("id") != account.ID {
		return account, graph.NoObject(strings.ToLower(c.Method), c.PathValue("id"))
	}
	return account, bad
}
