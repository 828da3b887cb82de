// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/oauth"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "instagram"

// Instagram operations that have no name in faults; only `*` matches them.
const (
	opRead  faults.Operation = "read" // one published post
	opLimit faults.Operation = "publishing_limit"
)

// Platform is the simulated Instagram.
type Platform struct {
	simulator.Options
	simulator.Profile
	own, facebook *login
}

// New returns the simulator.
func New(opts simulator.Options) *Platform {
	return &Platform{Options: opts, Profile: profile, own: instagramLogin(opts), facebook: facebookLogin(opts)}
}

// profile describes Instagram accounts. With Instagram Login, a token lives for 60 days and can renew itself. With Facebook Login, it is
// the token of the account's linked Page, which does not expire unless the control API sets a lifetime.
var profile = simulator.Profile{
	Platform: Name, Label: "Instagram", Prefix: "u_",
	ID: simulator.Form{
		Pattern: regexp.MustCompile(`^[1-9][0-9]{0,18}$`), Words: "an account id on Instagram is a number of up to 19 digits",
	},
	Username: simulator.Form{
		Pattern: regexp.MustCompile(`^[A-Za-z0-9_.]{1,30}$`), Words: "a username on Instagram has 1 to 30 letters, digits, underscores and full stops",
	},
	Grant: func(a state.Account) state.Terms {
		if a.Login == state.FacebookLogin {
			return state.Terms{Scopes: facebookScopes(), Access: a.Settings.TokenTTL}
		}
		return state.Terms{Scopes: []string{scopeBasic, scopePublish}, Access: cmp.Or(a.Settings.TokenTTL, graph.LongLife)}
	},
	Demo:       simulator.Demo(Name, "17841400000000001", "herald_demo"),
	DemoAccess: "instagram-access-demo",
}

// Accounts returns the profile of Instagram's accounts.
func Accounts() simulator.Profile { return profile }

// PostPath returns the path of a post's public page. Reels have a different path.
func (p *Platform) PostPath(_, id string) string {
	post, _ := p.Store.Post(Name, id)
	post.ID = id // for a deleted post as well
	return postPath(post)
}

func postPath(post state.Post) string {
	if detailOf(post.Detail).Kind == kindReels {
		return "/instagram/reel/" + graph.Shortcode(post.ID) + "/"
	}
	return "/instagram/p/" + graph.Shortcode(post.ID) + "/"
}

// PagePatterns returns the patterns of the public pages of posts and accounts.
func (*Platform) PagePatterns() []string {
	return []string{"/instagram/{username}", "/instagram/p/{code}/{$}", "/instagram/reel/{code}/{$}"}
}

// Find returns the post or the username at an address.
func (*Platform) Find(r *http.Request) (post, username string) {
	if code := r.PathValue("code"); code != "" {
		return cmp.Or(graph.IDOf(code), "unknown"), ""
	}
	return "", r.PathValue("username")
}

// Links returns no links: Instagram does not link addresses in captions.
func (*Platform) Links(string) [][2]int { return nil }

// Register adds the API to mux, once per login flow.
func (p *Platform) Register(mux *http.ServeMux) {
	refresh := p.own.Route(faults.RefreshToken, p.own.Refresh("ig_refresh_token", scopeBasic))
	mux.Handle("GET "+p.own.base+"/refresh_access_token", refresh)
	dialog := p.own.NewDialog(func(a state.Account) bool { return a.Login == "" })
	mux.Handle("GET "+p.own.base+"/oauth/authorize", dialog)
	mux.Handle("POST "+p.own.base+"/oauth/access_token", p.own.Route(graph.OpExchange, p.own.ExchangeCode(dialog, connected)))
	mux.Handle("GET "+p.own.base+"/access_token", p.own.Route(graph.OpExchange, p.own.Lengthen("ig_exchange_token", scopeBasic)))
	for _, l := range []*login{p.own, p.facebook} {
		// The API has its own mux because its paths overlap with page paths.
		api := http.NewServeMux()
		l.register(api)
		mux.Handle(l.base+"/", api)
	}
	p.facebook.registerUploads(mux)
	p.own.Resume(p.own.fetch)
}

// connected returns the first token response's additional fields. Instagram's documentation wraps them in {"data":
// […]}; clients, including Go's oauth2, read them at the top level.
func connected(to oauth.Grant) map[string]any {
	return map[string]any{"user_id": json.Number(scopedID(to.Account.ID)), "permissions": to.Scopes}
}
