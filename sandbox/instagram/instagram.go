// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"cmp"
	"errors"
	"hash/fnv"
	"net/http"
	"regexp"
	"strconv"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "instagram"

// The permissions that matter to a publisher.
const (
	scopeBasic   = "instagram_business_basic"
	scopePublish = "instagram_business_content_publish"
)

// Platform is the simulated Instagram.
type Platform struct{ *graph.API }

// New returns the simulator.
func New(opts graph.Options) *Platform {
	return &Platform{&graph.API{
		Options: opts, Platform: Name, Versions: []string{"v25.0", "v26.0"}, ParamType: "IGApiException", PermissionCode: 10,
		Limit: graph.Limit{
			Status: http.StatusBadRequest, Code: 17, Message: "(#17) User request limit reached", Usage: Name,
		},
	}}
}

// Name is "instagram".
func (*Platform) Name() string { return Name }

// Title is the platform's name for people.
func (*Platform) Title() string { return "Instagram" }

// Terms are what an account's owner grants: a token of 60 days that renews itself.
func (*Platform) Terms(a state.Account) state.Terms {
	return state.Terms{
		Scopes: []string{scopeBasic, scopePublish}, Access: cmp.Or(a.Settings.TokenTTL, graph.LongLife),
	}
}

// Demo is the account that is there from the start. Its token is well known: whoever reaches the sandbox may use it.
func Demo() (state.Account, state.Tokens) {
	account := state.Account{
		Key: state.Key{Platform: Name, ID: "17841400000000001"}, Username: "herald_demo", DisplayName: "Herald Demo",
	}
	return account, state.Tokens{Access: "instagram-access-demo", Scopes: (*Platform)(nil).Terms(account).Scopes}
}

var (
	idPattern       = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
	usernamePattern = regexp.MustCompile(`^[A-Za-z0-9_.]{1,30}$`)
)

// CheckAccount says what is wrong with an account that a test wants to make.
func (*Platform) CheckAccount(id, username string) error {
	if !idPattern.MatchString(id) {
		return errors.New("an account id on Instagram is a number of up to 19 digits")
	}
	if !usernamePattern.MatchString(username) {
		return errors.New("a username on Instagram has 1 to 30 letters, digits, underscores and full stops")
	}
	return nil
}

// DefaultUsername makes a username from an account id.
func (*Platform) DefaultUsername(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return "" // CheckAccount refuses the id
	}
	return "u_" + strconv.FormatUint(n, 36)
}

// PostPath is the path of a post's public page.
func (*Platform) PostPath(_, id string) string { return "/instagram/p/" + graph.Shortcode(id) + "/" }

// PagePatterns are where posts and accounts have their pages.
func (*Platform) PagePatterns() []string {
	return []string{"/instagram/{username}", "/instagram/p/{code}/{$}"}
}

// Find says which post, or else whose page, is at an address.
func (*Platform) Find(r *http.Request) (post, username string) {
	if code := r.PathValue("code"); code != "" {
		return cmp.Or(graph.IDOf(code), "unknown"), ""
	}
	return "", r.PathValue("username")
}

// Links returns nothing: in captions, addresses stay text.
func (*Platform) Links(string) [][2]int { return nil }

// Register adds the API to mux.
func (p *Platform) Register(mux *http.ServeMux) {
	refresh := p.Route(faults.RefreshToken, p.Refresh("ig_refresh_token", scopeBasic, p.Terms))
	mux.Handle("GET /instagram/refresh_access_token", refresh)

	// The API has a mux of its own: its paths and those of the pages overlap.
	api := http.NewServeMux()
	api.Handle("GET /instagram/{version}/{id}", p.Route(faults.Identity, p.user))
	api.HandleFunc("/", p.Refuse)
	mux.Handle("/instagram/", api)
}

// user is GET /me, and GET /{id} for the account itself.
func (p *Platform) user(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic)
	if bad != nil {
		return nil, bad
	}
	fields := c.Params.Fields()
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	body, bad := graph.Node{
		Type: "IGUser",
		Values: map[string]any{
			"id": scopedID(account.ID), "user_id": account.ID, "username": account.Username, "name": account.DisplayName,
			"account_type": "BUSINESS", "followers_count": 0, "follows_count": 0, "media_count": p.Store.PostCount(account.Key),
			"profile_picture_url": p.SiteURL(c.Request.Request) + "/_assets/avatar/" + Name + "/" + account.ID + ".svg",
		},
		Known: []string{
			"id", "user_id", "username", "name", "account_type", "profile_picture_url", "followers_count", "follows_count",
			"media_count", "biography", "website",
		},
		Default: []string{"id"},
	}.Select(fields)
	if bad != nil {
		return nil, bad
	}
	return body, nil
}

// scopedID is the id that an app sees of an account. It is not the account's own, which paths want and user_id is.
func scopedID(id string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(id)) // a hash takes everything
	return strconv.FormatUint(10_000_000_000_000_000+sum.Sum64()%10_000_000_000_000_000, 10)
}
