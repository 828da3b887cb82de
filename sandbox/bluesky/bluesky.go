// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"crypto/rand"
	"encoding/base32"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/links"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "bluesky"

// Operations that have no name in faults; only `*` matches them.
const (
	opRead    faults.Operation = "read" // a handle, a blob, or the server
	opDelete  faults.Operation = "delete"
	opSession faults.Operation = "session" // begun, continued or ended
)

// Platform is the simulated server.
type Platform struct {
	simulator.Options
	simulator.Profile

	// writing ensures that the writes to one repository run one at a time.
	writing simulator.Locks

	mu sync.Mutex
	// sessions contains each session twice, by its access token and by its refresh token.
	sessions map[string]*session
}

// New returns the simulator.
func New(opts simulator.Options) *Platform {
	return &Platform{Options: opts, Profile: profile, sessions: map[string]*session{}}
}

const (
	demoDID    = "did:plc:heralddemo234567234567ab"
	demoHandle = "herald-demo.test"
)

// profile describes the server's accounts. An app password is valid until its owner revokes it.
var profile = simulator.Profile{
	Platform: Name, Label: "Bluesky", Prefix: "u-",
	ID: simulator.Form{
		Pattern: regexp.MustCompile(`^did:plc:[a-z2-7]{24}$`), Words: "an account id on Bluesky is did:plc: and 24 letters and digits from 2 to 7",
	},
	Username: simulator.Form{
		Pattern: regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`),
		Words:   "a username on Bluesky is a domain, such as acme.test",
	},
	Grant:      func(state.Account) state.Terms { return state.Terms{Scopes: []string{"com.atproto.appPass"}} },
	Demo:       simulator.Demo(Name, demoDID, demoHandle),
	DemoAccess: demoHandle + ":demo-demo-demo-demo",
}

// Accounts returns the profile of the server's accounts.
func Accounts() simulator.Profile { return profile }

// DefaultUsername derives a handle from an account id.
func (p *Platform) DefaultUsername(id string) string { return p.Profile.DefaultUsername(id) + ".test" }

// NewAccess returns an account's handle and a new app password, which has four groups of four letters and digits
// (packages/pds/src/account-manager/helpers/password.ts).
func (*Platform) NewAccess(a state.Account) string {
	var random [10]byte
	_, _ = rand.Read(random[:]) // it never fails
	password := strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))
	return a.Username + ":" + password[:4] + "-" + password[4:8] + "-" + password[8:12] + "-" + password[12:]
}

// PostPath returns the path of a post's public page. Links contain the DID, which does not change with the handle.
func (p *Platform) PostPath(username, id string) string {
	author := username
	if account, found := p.Store.AccountNamed(Name, username); found {
		author = account.ID
	}
	return "/bluesky/profile/" + author + "/post/" + id
}

// PagePatterns returns the patterns of the public pages of posts and accounts.
func (*Platform) PagePatterns() []string {
	return []string{"/bluesky/profile/{username}", "/bluesky/profile/{username}/post/{id}"}
}

// Find returns the post or the username that a URL refers to.
func (p *Platform) Find(r *http.Request) (post, username string) {
	if id := r.PathValue("id"); id != "" {
		return id, ""
	}
	username = r.PathValue("username")
	if account, found := p.Store.Account(state.Key{Platform: Name, ID: username}); found {
		username = account.Username
	}
	return "", username
}

// Links returns the links in text as pairs of byte offsets, in order.
func (*Platform) Links(text string) [][2]int { return links.Find(text) }

// Register adds the API to mux.
func (p *Platform) Register(mux *http.ServeMux) {
	for method, route := range map[string]struct {
		op  faults.Operation
		act func(http.ResponseWriter, *faults.Request)
	}{
		"GET com.atproto.server.describeServer":  {opRead, p.describeServer},
		"POST com.atproto.server.createSession":  {opSession, p.createSession},
		"POST com.atproto.server.refreshSession": {opSession, p.refreshSession},
		"POST com.atproto.server.deleteSession":  {opSession, p.deleteSession},
		"GET com.atproto.server.getSession":      {faults.Identity, p.getSession},
		"GET com.atproto.identity.resolveHandle": {opRead, p.resolveHandle},
		"POST com.atproto.repo.uploadBlob":       {faults.Upload, p.uploadBlob},
		"POST com.atproto.repo.putRecord":        {faults.Publish, p.putRecord},
		"POST com.atproto.repo.createRecord":     {faults.Publish, p.createRecord},
		"POST com.atproto.repo.deleteRecord":     {opDelete, p.deleteRecord},
		"GET com.atproto.repo.getRecord":         {faults.Status, p.getRecord},
		"GET com.atproto.repo.listRecords":       {faults.List, p.listRecords},
		"GET com.atproto.sync.getBlob":           {opRead, p.getBlob},
	} {
		verb, name, _ := strings.Cut(method, " ")
		mux.Handle(verb+" /bluesky/xrpc/"+name, p.Gate.Handler(faults.Route{
			Platform: Name, Operation: route.op, Dialect: dialect{p}, Account: p.accountOf, Act: route.act,
			Streams: route.op == faults.Upload,
		}))
		mux.HandleFunc("/bluesky/xrpc/"+name, func(w http.ResponseWriter, r *http.Request) {
			p.fail(w, invalid("Incorrect HTTP method ("+r.Method+") expected "+verb))
		})
	}
	mux.HandleFunc("/bluesky/xrpc/{method}", func(w http.ResponseWriter, r *http.Request) {
		p.fail(w, invalid("No service configured for "+r.PathValue("method")))
	})
	mux.HandleFunc("/bluesky/", func(w http.ResponseWriter, _ *http.Request) { p.fail(w, problemFor(http.StatusNotFound)) })
}
