// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
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
type Platform struct {
	Options
	rates rates
	// uploads are the locks of uploads, by publish id: one request at a time works on one.
	uploads sync.Map
}

// New returns the simulator. It goes on with what a restart cut off.
func New(opts Options) *Platform {
	p := &Platform{Options: opts}
	p.resume()
	return p
}

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

// PostPath is the path of a post's public page, which tells photos from videos.
func (p *Platform) PostPath(username, id string) string {
	kind := "/video/"
	if post, _ := p.Store.Post(Name, id); detailOf(post).MediaType == photo {
		kind = "/photo/"
	}
	return "/tiktok/@" + username + kind + id
}

// PagePatterns are where posts and accounts have their pages.
func (*Platform) PagePatterns() []string {
	return []string{"/tiktok/{username}", "/tiktok/{username}/video/{id}", "/tiktok/{username}/photo/{id}"}
}

// Find says which post, or else whose page, is at an address.
func (*Platform) Find(r *http.Request) (post, username string) {
	return r.PathValue("id"), strings.TrimPrefix(r.PathValue("username"), "@")
}

// Links returns nothing: in captions, addresses stay text.
func (*Platform) Links(string) [][2]int { return nil }

// opCancel is an operation that faults cannot name, only match with `*`.
const opCancel faults.Operation = "cancel"

// Register adds the API to mux. TikTok's paths end in a slash; without it they do not exist.
func (p *Platform) Register(mux *http.ServeMux) {
	const publish = "POST /tiktok/v2/post/publish/"
	video := byBody(p.route(faults.Create, p.directVideo), p.route(faults.Publish, p.directVideo))
	inbox := byBody(p.route(faults.Create, p.inboxVideo), p.route(faults.Publish, p.inboxVideo))
	for pattern, handler := range map[string]http.Handler{
		"GET /tiktok/v2/user/info":     p.route(faults.Identity, p.userInfo),
		publish + "creator_info/query": p.route(faults.Identity, p.creatorInfo),
		publish + "video/init":         video,
		publish + "inbox/video/init":   inbox,
		publish + "content/init":       p.route(faults.Publish, p.photos),
		publish + "status/fetch":       p.route(faults.Status, p.status),
		publish + "cancel":             p.route(opCancel, p.cancel),
		"POST /tiktok/v2/video/list":   p.route(faults.List, p.list),
		"POST /tiktok/v2/oauth/token": p.Gate.Handler(faults.Route{
			Platform: Name, Operation: faults.RefreshToken, Dialect: dialect{p}, Account: p.formAccount, Act: p.token,
		}),
	} {
		mux.Handle(pattern+"/{$}", handler)
		mux.HandleFunc(pattern, p.unknownPath)
	}
	p.registerUploads(mux)
	mux.HandleFunc("/tiktok/", p.unknownPath)
}

// route is an operation that is asked for with an access token.
func (p *Platform) route(op faults.Operation, act func(http.ResponseWriter, *faults.Request)) http.Handler {
	return p.Gate.Handler(faults.Route{Platform: Name, Operation: op, Dialect: dialect{p}, Account: p.bearerAccount, Act: act})
}

// registerUploads adds what lies on a host of its own: the addresses of uploads. The last chunk makes the post.
func (p *Platform) registerUploads(mux *http.ServeMux) {
	chunk := func(op faults.Operation) http.Handler {
		return p.Gate.Handler(faults.Route{
			Platform: Name, Operation: op, Dialect: uploadDialect{}, Account: p.uploadAccount, Act: p.upload, Streams: true,
		})
	}
	some, last := chunk(faults.Upload), chunk(faults.Publish)
	mux.HandleFunc("PUT /tiktok/video/{$}", func(w http.ResponseWriter, r *http.Request) {
		if final(r) {
			last.ServeHTTP(w, r)
			return
		}
		some.ServeHTTP(w, r)
	})
}

// byBody tells the call that begins an upload from the one that makes a post of a file that TikTok fetches.
func byBody(upload, pull http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, err := io.ReadAll(io.LimitReader(r.Body, maxInit))
		if err != nil {
			return // the client has gone
		}
		var body struct {
			From struct {
				Source string `json:"source"`
			} `json:"source_info"`
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(start), r.Body), r.Body}
		if json.Unmarshal(start, &body) == nil && body.From.Source == fromURL {
			pull.ServeHTTP(w, r)
			return
		}
		upload.ServeHTTP(w, r)
	})
}

// maxInit is how much of a call's body is looked at to tell what it is.
const maxInit = 1 << 20

func (p *Platform) unknownPath(w http.ResponseWriter, _ *http.Request) {
	p.fail(w, http.StatusNotFound, "invalid_params", "There is no such path.")
}
