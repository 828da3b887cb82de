// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/links"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "facebook"

// The permissions that matter to a publisher.
const (
	scopeList = "pages_show_list"
	scopePost = "pages_manage_posts"
	scopeRead = "pages_read_engagement"
)

// Platform is the simulated Facebook. Its accounts are Pages.
type Platform struct{ *graph.API }

// New returns the simulator.
func New(opts graph.Options) *Platform {
	return &Platform{&graph.API{
		Options: opts, Platform: Name, Versions: []string{"v25.0", "v26.0"}, ParamType: "OAuthException", PermissionCode: 200,
		Limit: graph.Limit{
			Status: http.StatusBadRequest, Code: 32, Message: "(#32) Page request limit reached", Usage: "pages",
		},
	}}
}

// Name is "facebook".
func (*Platform) Name() string { return Name }

// Title is the platform's name for people.
func (*Platform) Title() string { return "Facebook" }

// Terms are what a Page's token is good for. It does not end by itself, unless the control API says so, and nothing renews
// it.
func (*Platform) Terms(a state.Account) state.Terms {
	return state.Terms{Scopes: []string{scopeList, scopePost, scopeRead}, Access: a.Settings.TokenTTL}
}

// Demo is the Page that is there from the start. Its token is well known: whoever reaches the sandbox may use it.
func Demo() (state.Account, state.Tokens) {
	account := state.Account{
		Key: state.Key{Platform: Name, ID: "104000000000001"}, Username: "herald.demo", DisplayName: "Herald Demo",
	}
	return account, state.Tokens{Access: "facebook-access-demo", Scopes: (*Platform)(nil).Terms(account).Scopes}
}

var (
	idPattern       = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
	postPattern     = regexp.MustCompile(`^[0-9]+_[0-9]+$`)
	usernamePattern = regexp.MustCompile(`^[A-Za-z0-9.]{1,50}$`)
)

// CheckAccount says what is wrong with an account that a test wants to make.
func (*Platform) CheckAccount(id, username string) error {
	if !idPattern.MatchString(id) {
		return errors.New("a Page's id on Facebook is a number of up to 19 digits")
	}
	if !usernamePattern.MatchString(username) {
		return errors.New("a Page's username on Facebook has 1 to 50 letters, digits and full stops")
	}
	return nil
}

// DefaultUsername makes a username from an account id.
func (*Platform) DefaultUsername(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return "" // CheckAccount refuses the id
	}
	return "page." + strconv.FormatUint(n, 36)
}

// PostPath is the path of a post's public page. A post's id begins with that of its Page.
func (*Platform) PostPath(_, id string) string { return "/facebook/" + id }

// PagePatterns are where posts and Pages have their pages.
func (*Platform) PagePatterns() []string { return []string{"/facebook/{name}"} }

// Find says which post, or else whose page, is at an address. A Page may be named by its id as well.
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

// Links returns the addresses in a text as pairs of byte offsets, in order.
func (*Platform) Links(text string) [][2]int { return links.Find(text) }

// Register adds the API to mux.
func (p *Platform) Register(mux *http.ServeMux) {
	api := http.NewServeMux()
	identity, status := p.Route(faults.Identity, p.page), p.Route(faults.Status, p.read)
	api.HandleFunc("GET /facebook/{version}/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if _, isPage := p.Store.Account(state.Key{Platform: Name, ID: id}); isPage || id == "me" {
			identity.ServeHTTP(w, r)
			return
		}
		status.ServeHTTP(w, r)
	})
	api.Handle("POST /facebook/{version}/{id}/feed", p.Route(faults.Publish, p.feed))
	api.HandleFunc("POST /facebook/{version}/{id}/photos", p.photos())
	list := p.Route(faults.List, p.published)
	api.Handle("GET /facebook/{version}/{id}/feed", list)
	api.Handle("GET /facebook/{version}/{id}/published_posts", list)
	api.HandleFunc("/", p.Refuse)
	mux.Handle("/facebook/", api)
}
