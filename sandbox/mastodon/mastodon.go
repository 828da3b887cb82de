// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/links"
	"github.com/herald-social/herald/sandbox/oauth"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "mastodon"

// Operations that have no name in faults; only `*` matches them.
const (
	opRead     faults.Operation = "read" // an account, a post, its source, or the server
	opDelete   faults.Operation = "delete"
	opRegister faults.Operation = "register" // an app
	opExchange faults.Operation = "exchange" // a code or an app's secret
	opRevoke   faults.Operation = "revoke"   // a token
)

// Platform is the simulated Mastodon server.
type Platform struct {
	simulator.Options
	simulator.Profile

	dialog *oauth.Dialog
	// posting ensures that the requests with one Idempotency-Key run one at a time.
	posting simulator.Locks

	mu     sync.Mutex
	keys   map[string]keyUse
	apps   map[string]app
	issued map[issue]string
}

// New returns the simulator.
func New(opts simulator.Options) *Platform {
	p := &Platform{Options: opts, Profile: profile, keys: map[string]keyUse{}, apps: map[string]app{}, issued: map[issue]string{}}
	p.dialog = p.newDialog()
	return p
}

var idPattern = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)

// profile describes the server's accounts. Access tokens do not expire, and there are no refresh tokens.
var profile = simulator.Profile{
	Platform: Name, Label: "Mastodon", Prefix: "u_",
	ID: simulator.Form{Pattern: idPattern, Words: "an account id on Mastodon is a number of up to 19 digits"},
	Username: simulator.Form{
		Pattern: regexp.MustCompile(`^[A-Za-z0-9_]{1,30}$`), Words: "a username on Mastodon has 1 to 30 letters, digits and underscores",
	},
	Grant: func(a state.Account) state.Terms {
		return state.Terms{Scopes: []string{"read", "write"}, Access: a.Settings.TokenTTL}
	},
	Demo:       simulator.Demo(Name, "109300000000000001", "herald_demo"),
	DemoAccess: "mastodon-access-demo",
}

// Accounts returns the profile of the server's accounts.
func Accounts() simulator.Profile { return profile }

// PostPath returns the path of a post's public page.
func (*Platform) PostPath(username, id string) string { return "/mastodon/@" + username + "/" + id }

// PagePatterns returns the patterns of the public pages of posts and accounts.
func (*Platform) PagePatterns() []string {
	return []string{"/mastodon/{username}", "/mastodon/{username}/{id}"}
}

// Find returns the post or the username that a URL refers to.
func (*Platform) Find(r *http.Request) (post, username string) {
	if id := r.PathValue("id"); id != "" {
		return id, ""
	}
	return "", strings.TrimPrefix(r.PathValue("username"), "@")
}

// Links returns the links in text as pairs of byte offsets, in order.
func (*Platform) Links(text string) [][2]int { return links.Find(text) }

// Register adds the API to mux.
func (p *Platform) Register(mux *http.ServeMux) {
	for pattern, route := range map[string]struct {
		op  faults.Operation
		act func(http.ResponseWriter, *faults.Request)
	}{
		"GET /mastodon/api/v1/accounts/verify_credentials":     {faults.Identity, p.verifyCredentials},
		"GET /mastodon/api/v1/accounts/lookup":                 {opRead, p.lookupAccount},
		"GET /mastodon/api/v1/accounts/{id}":                   {opRead, p.readAccount},
		"GET /mastodon/api/v1/accounts/{id}/statuses":          {faults.List, p.listStatuses},
		"POST /mastodon/api/v1/media":                          {faults.Upload, p.upload},
		"POST /mastodon/api/v2/media":                          {faults.Upload, p.upload},
		"GET /mastodon/api/v1/media/{id}":                      {faults.Status, p.readMedia},
		"PUT /mastodon/api/v1/media/{id}":                      {faults.Metadata, p.changeMedia},
		"POST /mastodon/api/v1/statuses":                       {faults.Publish, p.createStatus},
		"GET /mastodon/api/v1/statuses/{id}":                   {opRead, p.readStatus},
		"GET /mastodon/api/v1/statuses/{id}/source":            {opRead, p.readSource},
		"GET /mastodon/api/v1/statuses/{id}/context":           {opRead, p.readContext},
		"DELETE /mastodon/api/v1/statuses/{id}":                {opDelete, p.deleteStatus},
		"GET /mastodon/api/v1/instance":                        {opRead, p.instanceV1},
		"GET /mastodon/api/v2/instance":                        {opRead, p.instanceV2},
		"POST /mastodon/api/v1/apps":                           {opRegister, p.registerApp},
		"GET /mastodon/api/v1/apps/verify_credentials":         {opRead, p.verifyApp},
		"GET /mastodon/.well-known/oauth-authorization-server": {opRead, p.metadata},
		"POST /mastodon/oauth/token":                           {opExchange, p.token},
		"POST /mastodon/oauth/revoke":                          {opRevoke, p.revoke},
	} {
		mux.Handle(pattern, p.Gate.Handler(faults.Route{
			Platform: Name, Operation: route.op, Dialect: dialect{p}, Account: p.BearerAccount(Name), Act: route.act,
			Streams: route.op == faults.Upload,
		}))
	}
	mux.Handle("GET /mastodon/oauth/authorize", p.dialog)
	mux.HandleFunc("/mastodon/", func(w http.ResponseWriter, _ *http.Request) { p.fail(w, problemFor(http.StatusNotFound)) })
}
