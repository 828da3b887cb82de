// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"net/http"
	"regexp"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/links"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "facebook"

// The permissions that a publisher uses.
const (
	scopeList = "pages_show_list"
	scopePost = "pages_manage_posts"
	scopeRead = "pages_read_engagement"
)

// Platform is the simulated Facebook. Its accounts are Pages.
type Platform struct{ *graph.API }

// New returns the simulator.
func New(opts simulator.Options) *Platform {
	return &Platform{&graph.API{
		Options: opts, Profile: profile, Newest: graph.NewestVersion, ParamType: "OAuthException", PermissionCode: 200,
		Limit: graph.Limit{
			Status: http.StatusBadRequest, Code: 32, Message: "(#32) Page request limit reached", Usage: "pages",
		},
		Block: graph.Abuse(),
	}}
}

// profile describes Pages. A Page token does not expire unless the control API sets a lifetime, and it cannot be renewed.
var profile = simulator.Profile{
	Platform: Name, Label: "Facebook", Prefix: "page.",
	ID: simulator.Form{
		Pattern: regexp.MustCompile(`^[1-9][0-9]{0,18}$`), Words: "a Page's id on Facebook is a number of up to 19 digits",
	},
	Username: simulator.Form{
		Pattern: regexp.MustCompile(`^[A-Za-z0-9.]{1,50}$`), Words: "a Page's username on Facebook has 1 to 50 letters, digits and full stops",
	},
	Grant: func(a state.Account) state.Terms {
		return state.Terms{Scopes: []string{scopeList, scopePost, scopeRead}, Access: a.Settings.TokenTTL}
	},
	Demo:       simulator.Demo(Name, "104000000000001", "herald.demo"),
	DemoAccess: "facebook-access-demo",
}

// Accounts returns the profile of Pages.
func Accounts() simulator.Profile { return profile }

var postPattern = regexp.MustCompile(`^[0-9]+_[0-9]+$`)

// PostPath returns the path of a post's public page. A post's ID starts with its Page's ID.
func (*Platform) PostPath(_, id string) string { return "/facebook/" + id }

// PagePatterns returns the patterns of the public pages of posts and Pages.
func (*Platform) PagePatterns() []string { return []string{"/facebook/{name}"} }

// Find returns the post or the username at an address. A Page may also be named by its id.
func (p *Platform) Find(r *http.Request) (post, username string) {
	name := r.PathValue("name")
	if postPattern.MatchString(name) {
		return name, ""
	}
	if account, ok := p.Store.Account(state.Key{Platform: Name, ID: name}); ok {
		return "", account.Username
	}
	return "", name
}

// Links returns the addresses in text as pairs of byte offsets, in order.
func (*Platform) Links(text string) [][2]int { return links.Find(text) }

// Register adds the API to mux.
func (p *Platform) Register(mux *http.ServeMux) {
	api := http.NewServeMux()
	page, read := p.Route(faults.Identity, p.page), p.Route(faults.Status, p.read)
	api.Handle("GET /facebook/{version}/{id}", p.ByID(page, page, read, read))
	p.RegisterFacebookLogin(api, "/facebook", p.NewDialog(nil))
	mux.Handle("GET /facebook/debug_token", api) // otherwise matched by a Page's pattern
	api.Handle("GET /facebook/{version}/me/accounts", p.Route(faults.Identity, p.pages))
	api.Handle("DELETE /facebook/{version}/{id}", p.Route(graph.OpDelete, p.remove))
	api.HandleFunc("POST /facebook/{version}/{id}", p.change())
	api.HandleFunc("POST /facebook/{version}/{id}/feed", p.feedOrDraft())
	api.HandleFunc("POST /facebook/{version}/{id}/photos", p.photos())
	list := p.Route(faults.List, p.published)
	api.Handle("GET /facebook/{version}/{id}/feed", list)
	api.Handle("GET /facebook/{version}/{id}/published_posts", list)
	api.HandleFunc("/", p.Refuse)
	mux.Handle("/facebook/", api)
}
