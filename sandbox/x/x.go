// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "x"

// accessTokenTTL is the life of X's access tokens.
const accessTokenTTL = 2 * time.Hour

// The scopes of OAuth 2.0 that matter to a publisher.
const (
	scopeRead    = "tweet.read"
	scopeWrite   = "tweet.write"
	scopeUsers   = "users.read"
	scopeMedia   = "media.write"
	scopeOffline = "offline.access"
)

// Operations of X that faults cannot name, only match with `*`.
const (
	opDelete faults.Operation = "delete"
	opRevoke faults.Operation = "revoke"
)

// Options are what the simulator needs.
type Options struct {
	Store *state.Store
	// Blobs keeps the bytes that arrive.
	Blobs  *blobs.Store
	Gate   *faults.Gate
	Clock  clock.PassiveClock
	Logger *slog.Logger
	// SiteURL returns the sandbox's own address as the client of that request reaches it, without a slash at the end.
	SiteURL func(*http.Request) string
}

// Platform is the simulated X.
type Platform struct {
	Options
	codes codes
}

// New returns the simulator.
func New(opts Options) *Platform {
	return &Platform{Options: opts, codes: codes{byCode: map[string]code{}}}
}

// Name is "x".
func (*Platform) Name() string { return Name }

// Title is the platform's name for people.
func (*Platform) Title() string { return "X" }

// allScopes are granted to an account that is made for a test.
func allScopes() []string {
	return []string{scopeRead, scopeWrite, scopeUsers, scopeMedia, scopeOffline}
}

// Terms are what an account's owner grants. X's refresh tokens rotate.
func (*Platform) Terms(a state.Account) state.Terms {
	return state.Terms{Scopes: allScopes(), Access: cmp.Or(a.Settings.TokenTTL, accessTokenTTL), Refresh: true}
}

// Demo is the account that is there from the start. Its tokens are well known: whoever reaches the sandbox may use it.
func Demo() (state.Account, state.Tokens) {
	account := state.Account{
		Key: state.Key{Platform: Name, ID: "1500000000000000001"}, Username: "herald_demo", DisplayName: "Herald Demo",
	}
	return account, state.Tokens{Access: "x-access-demo", Refresh: "x-refresh-demo", Scopes: (*Platform)(nil).Terms(account).Scopes}
}

var (
	idPattern       = regexp.MustCompile(`^[0-9]{1,19}$`)
	usernamePattern = regexp.MustCompile(`^[A-Za-z0-9_]{1,15}$`)
)

// CheckAccount says what is wrong with an account that a test wants to make.
func (*Platform) CheckAccount(id, username string) error {
	if !idPattern.MatchString(id) {
		return errors.New("an account id on X is a number of up to 19 digits")
	}
	if !usernamePattern.MatchString(username) {
		return errors.New("a username on X has 1 to 15 letters, digits and underscores")
	}
	return nil
}

// DefaultUsername makes a username from an account id.
func (*Platform) DefaultUsername(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return "" // CheckAccount refuses the id
	}
	return "u_" + strconv.FormatUint(n, 36) // 19 digits are at most 13 of base 36, and 15 are allowed
}

// PostPath is the path of a post's public page.
func (*Platform) PostPath(username, id string) string { return "/x/" + username + "/status/" + id }

// PagePatterns are where posts and accounts have their pages.
func (*Platform) PagePatterns() []string {
	return []string{"/x/{username}", "/x/{username}/status/{id}"}
}

// Find says which post, or else whose page, is at an address.
func (*Platform) Find(r *http.Request) (post, username string) {
	return r.PathValue("id"), r.PathValue("username")
}

// Register adds the API to mux.
func (p *Platform) Register(mux *http.ServeMux) {
	for pattern, route := range map[string]struct {
		op      faults.Operation
		account func(*faults.Request) string
		act     func(http.ResponseWriter, *faults.Request)
	}{
		"GET /x/2/users/me":          {faults.Identity, p.bearerAccount, p.usersMe},
		"POST /x/2/tweets":           {faults.Publish, p.bearerAccount, p.createTweet},
		"DELETE /x/2/tweets/{id}":    {opDelete, p.bearerAccount, p.deleteTweet},
		"GET /x/2/users/{id}/tweets": {faults.List, p.bearerAccount, p.timeline},
		"POST /x/2/oauth2/token":     {faults.RefreshToken, p.formAccount, p.token},
		"POST /x/2/oauth2/revoke":    {opRevoke, p.formAccount, p.revoke},
	} {
		mux.Handle(pattern, p.Gate.Handler(faults.Route{
			Platform: Name, Operation: route.op, Dialect: dialect{p}, Account: route.account, Act: route.act,
		}))
	}
	mux.HandleFunc("GET /x/i/oauth2/authorize", p.authorize)
	mux.HandleFunc("/x/", func(w http.ResponseWriter, _ *http.Request) {
		p.fail(w, "", notFound("Could not find what was requested; no such method and path."))
	})
}
