// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
	"strconv"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "instagram"

// Operations of Instagram that faults cannot name, only match with `*`.
const (
	opRead  faults.Operation = "read" // one published post
	opLimit faults.Operation = "publishing_limit"
)

// Platform is the simulated Instagram.
type Platform struct {
	graph.Options
	own, facebook *login
}

// New returns the simulator.
func New(opts graph.Options) *Platform {
	return &Platform{Options: opts, own: instagramLogin(opts), facebook: facebookLogin(opts)}
}

// Name is "instagram".
func (*Platform) Name() string { return Name }

// Title is the platform's name for people.
func (*Platform) Title() string { return "Instagram" }

// Terms are what an account's owner grants. With Instagram Login that is a token of 60 days that renews itself; with
// Facebook Login it is the token of the Page that the account is linked to, which does not end unless the control API
// says so.
func (*Platform) Terms(a state.Account) state.Terms {
	if a.Login == state.FacebookLogin {
		return state.Terms{Scopes: facebookScopes(), Access: a.Settings.TokenTTL}
	}
	return state.Terms{Scopes: []string{scopeBasic, scopePublish}, Access: cmp.Or(a.Settings.TokenTTL, graph.LongLife)}
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

// PostPath is the path of a post's public page. Reels have one of another form than everything else.
func (p *Platform) PostPath(_, id string) string {
	post, _ := p.Store.Post(Name, id)
	post.ID = id // of one that is gone as well
	return postPath(post)
}

func postPath(post state.Post) string {
	if detailOf(post.Detail).Kind == kindReels {
		return "/instagram/reel/" + graph.Shortcode(post.ID) + "/"
	}
	return "/instagram/p/" + graph.Shortcode(post.ID) + "/"
}

// PagePatterns are where posts and accounts have their pages.
func (*Platform) PagePatterns() []string {
	return []string{"/instagram/{username}", "/instagram/p/{code}/{$}", "/instagram/reel/{code}/{$}"}
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

// Register adds the API to mux, once for each way to log in.
func (p *Platform) Register(mux *http.ServeMux) {
	refresh := p.own.Route(faults.RefreshToken, p.own.Refresh("ig_refresh_token", scopeBasic, p.Terms))
	mux.Handle("GET "+p.own.base+"/refresh_access_token", refresh)
	for _, l := range []*login{p.own, p.facebook} {
		// The API has a mux of its own: its paths and those of the pages overlap.
		api := http.NewServeMux()
		l.register(api)
		mux.Handle(l.base+"/", api)
	}
	p.facebook.registerUploads(mux)
	p.own.resume()
}
