// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"cmp"
	"errors"
	"hash/fnv"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "tiktok"

const (
	// accessLife is the life of access tokens, documented so since November 2026; before, it was a day.
	accessLife = 2 * time.Hour
	// refreshLife is that of refresh tokens, documented so since then as well; before, it was a year.
	refreshLife = 180 * 24 * time.Hour
)

// The scopes that matter to a publisher.
const (
	scopePublish = "video.publish"
	scopeUpload  = "video.upload"
	scopeBasic   = "user.info.basic"
	scopeProfile = "user.info.profile"
	scopeStats   = "user.info.stats"
	scopeList    = "video.list"
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

// Platform is the simulated TikTok.
type Platform struct{ Options }

// New returns the simulator.
func New(opts Options) *Platform { return &Platform{opts} }

// Name is "tiktok".
func (*Platform) Name() string { return Name }

// Title is the platform's name for people.
func (*Platform) Title() string { return "TikTok" }

// Terms are what an account's owner grants. Refresh tokens rotate.
func (*Platform) Terms(a state.Account) state.Terms {
	return state.Terms{
		Scopes: []string{scopeBasic, scopeProfile, scopePublish, scopeUpload, scopeList},
		Access: cmp.Or(a.Settings.TokenTTL, accessLife), Refresh: true, RefreshLife: refreshLife,
	}
}

// Demo is the account that is there from the start. Its tokens are well known: whoever reaches the sandbox may use it. An
// open_id may begin with a minus, as this one does.
func Demo() (state.Account, state.Tokens) {
	account := state.Account{
		Key: state.Key{Platform: Name, ID: "-000HeraldDemoAccount00000000001"}, Username: "herald_demo", DisplayName: "Herald Demo",
	}
	return account, state.Tokens{Access: "tiktok-access-demo", Refresh: "tiktok-refresh-demo", Scopes: (*Platform)(nil).Terms(account).Scopes}
}

var (
	idPattern       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	usernamePattern = regexp.MustCompile(`^[A-Za-z0-9_.]{1,24}$`)
)

// CheckAccount says what is wrong with an account that a test wants to make.
func (*Platform) CheckAccount(id, username string) error {
	if !idPattern.MatchString(id) {
		return errors.New("an open_id on TikTok has 1 to 64 letters, digits, minus signs and underscores")
	}
	if !usernamePattern.MatchString(username) {
		return errors.New("a username on TikTok has 1 to 24 letters, digits, underscores and full stops")
	}
	return nil
}

// DefaultUsername makes a username from an account id.
func (*Platform) DefaultUsername(id string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(id)) // a hash takes everything
	return "user" + strconv.FormatUint(sum.Sum64(), 36)
}

// PostPath is the path of a post's public page.
func (*Platform) PostPath(username, id string) string { return "/tiktok/@" + username + "/video/" + id }

// PagePatterns are where posts and accounts have their pages.
func (*Platform) PagePatterns() []string {
	return []string{"/tiktok/{username}", "/tiktok/{username}/video/{id}"}
}

// Find says which post, or else whose page, is at an address.
func (*Platform) Find(r *http.Request) (post, username string) {
	return r.PathValue("id"), strings.TrimPrefix(r.PathValue("username"), "@")
}

// Links returns nothing: in captions, addresses stay text.
func (*Platform) Links(string) [][2]int { return nil }

// Register adds the API to mux. TikTok's paths end in a slash; without it they do not exist.
func (p *Platform) Register(mux *http.ServeMux) {
	for pattern, route := range map[string]struct {
		op      faults.Operation
		account func(*faults.Request) string
		act     func(http.ResponseWriter, *faults.Request)
	}{
		"GET /tiktok/v2/user/info":                        {faults.Identity, p.bearerAccount, p.userInfo},
		"POST /tiktok/v2/post/publish/creator_info/query": {faults.Identity, p.bearerAccount, p.creatorInfo},
		"POST /tiktok/v2/oauth/token":                     {faults.RefreshToken, p.formAccount, p.token},
	} {
		mux.Handle(pattern+"/{$}", p.Gate.Handler(faults.Route{
			Platform: Name, Operation: route.op, Dialect: dialect{p}, Account: route.account, Act: route.act,
		}))
		mux.HandleFunc(pattern, p.unknownPath)
	}
	mux.HandleFunc("/tiktok/", p.unknownPath)
}

func (p *Platform) unknownPath(w http.ResponseWriter, _ *http.Request) {
	p.fail(w, http.StatusNotFound, "invalid_params", "There is no such path.")
}
