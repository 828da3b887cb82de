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

// The paths of the two hosts of Instagram's API. That of Instagram Login, graph.instagram.com, is the platform's own.
const (
	instagramBase = "/" + Name
	facebookBase  = instagramBase + "/graph.facebook.com"
)

// The permissions of Instagram Login that matter to a publisher.
const (
	scopeBasic   = "instagram_business_basic"
	scopePublish = "instagram_business_content_publish"
)

// Those of Facebook Login.
const (
	scopeFacebookBasic   = "instagram_basic"
	scopeFacebookPublish = "instagram_content_publish"
	scopePageRead        = "pages_read_engagement"
	scopePageList        = "pages_show_list"
)

func facebookScopes() []string {
	return []string{scopeFacebookBasic, scopeFacebookPublish, scopePageRead, scopePageList}
}

// login is the API as one way to log in has it: a host with tokens and permissions of its own, and the same edges.
type login struct {
	*graph.API
	// base is the path that stands for the host.
	base string
	// linked says that accounts are reached through the Facebook Page that they are linked to.
	linked bool
	// read and write are the permissions that looking and publishing need.
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

// ofInstagram tells the tokens of Instagram Login from those of Facebook Login: the permissions have other names, and the
// one host cannot read the other's tokens.
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

// owner returns the account that a path begins with, whose token must have these permissions. Through a Page, me is the
// Page and never the account.
func (l *login) owner(c *graph.Call, scopes []string) (state.Account, *graph.Error) {
	account, bad := c.Owner(scopes...)
	if bad == nil && l.linked && c.PathValue("id") != account.ID {
		return account, graph.NoObject(strings.ToLower(c.Method), c.PathValue("id"))
	}
	return account, bad
}
