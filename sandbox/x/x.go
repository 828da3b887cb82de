// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/oauth"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "x"

// accessTokenTTL is the lifetime of X's access tokens.
const accessTokenTTL = 2 * time.Hour

// The OAuth 2.0 scopes that a publisher uses.
const (
	scopeRead    = "tweet.read"
	scopeWrite   = "tweet.write"
	scopeUsers   = "users.read"
	scopeMedia   = "media.write"
	scopeOffline = "offline.access"
)

// Platform is the simulated X.
type Platform struct {
	simulator.Options
	simulator.Profile
	dialog *oauth.Dialog
	// growing ensures that the requests that change an upload run one at a time.
	growing simulator.Locks
}

// New returns the simulator.
func New(opts simulator.Options) *Platform {
	return &Platform{Options: opts, Profile: profile, dialog: newDialog(opts)}
}

// allScopes returns the scopes of accounts that tests create.
func allScopes() []string {
	return []string{scopeRead, scopeWrite, scopeUsers, scopeMedia, scopeOffline}
}

var idPattern = regexp.MustCompile(`^[0-9]{1,19}$`)

// profile describes X's accounts. Refresh tokens rotate.
var profile = simulator.Profile{
	Platform: Name, Label: "X", Prefix: "u_", // 19 decimal digits are at most 13 in base 36, and 15 are allowed
	ID: simulator.Form{Pattern: idPattern, Words: "an account id on X is a number of up to 19 digits"},
	Username: simulator.Form{
		Pattern: regexp.MustCompile(`^[A-Za-z0-9_]{1,15}$`), Words: "a username on X has 1 to 15 letters, digits and underscores",
	},
	Grant: func(a state.Account) state.Terms {
		return state.Terms{Scopes: allScopes(), Access: cmp.Or(a.Settings.TokenTTL, accessTokenTTL), Refresh: true}
	},
	Demo:       simulator.Demo(Name, "1500000000000000001", "herald_demo"),
	DemoAccess: "x-access-demo", DemoRefresh: "x-refresh-demo",
}

// Accounts returns the profile of X's accounts.
func Accounts() simulator.Profile { return profile }

// PostPath returns the path of a post's public page.
func (*Platform) PostPath(username, id string) string { return "/x/" + username + "/status/" + id }

// PagePatterns returns the patterns of the public pages of posts and accounts.
func (*Platform) PagePatterns() []string {
	return []string{"/x/{username}", "/x/{username}/status/{id}"}
}

// Find returns the post or the username that a URL refers to.
func (*Platform) Find(r *http.Request) (post, username string) {
	return r.PathValue("id"), r.PathValue("username")
}

// Links returns the links in text as pairs of byte offsets, in order.
func (*Platform) Links(text string) [][2]int {
	var out [][2]int
	for _, l := range findLinks(text) {
		out = append(out, [2]int{l.start, l.end})
	}
	return out
}

// Register adds the API to mux.
func (p *Platform) Register(mux *http.ServeMux) {
	for pattern, route := range map[string]struct {
		of  endpoint
		act func(http.ResponseWriter, *faults.Request)
	}{
		"GET /x/2/users/me":                    {callMe, p.usersMe},
		"POST /x/2/tweets":                     {callCreate, p.createTweet},
		"GET /x/2/users/{id}/tweets":           {callTimeline, p.timeline},
		"GET /x/2/tweets/{id}":                 {callRead, p.readTweetByID},
		"DELETE /x/2/tweets/{id}":              {callDelete, p.deleteTweet},
		"POST /x/2/media/upload":               {callUpload, p.uploadImage},
		"POST /x/2/media/upload/initialize":    {callChunks, p.initialize},
		"POST /x/2/media/upload/{id}/append":   {callChunks, p.appendChunk},
		"POST /x/2/media/upload/{id}/finalize": {callChunks, p.finalize},
		"GET /x/2/media/upload":                {callStatus, p.mediaStatus},
		"POST /x/2/media/metadata":             {callMetadata, p.describe},
		"POST /x/2/oauth2/token":               {callToken, p.token},
		"POST /x/2/oauth2/revoke":              {callRevoke, p.revoke},
	} {
		account := p.BearerAccount(Name)
		if route.of == callToken || route.of == callRevoke {
			account = p.FormAccount(Name)
		}
		mux.Handle(pattern, p.Gate.Handler(faults.Route{
			Platform: Name, Operation: route.of.op, Dialect: dialect{p, route.of}, Account: account, Act: route.act,
			Streams: route.of == callUpload || strings.HasSuffix(pattern, "/append"),
		}))
	}
	mux.Handle("GET /x/i/oauth2/authorize", p.dialog)
	mux.HandleFunc("/x/", func(w http.ResponseWriter, _ *http.Request) {
		p.fail(w, callUnknown, problemFor(http.StatusNotFound))
	})
}
