// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
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
const Name = "tiktok"

const (
	// accessLife is the lifetime of access tokens, as documented since November 2026; it used to be a day.
	accessLife = 2 * time.Hour
	// refreshLife is the lifetime of refresh tokens, as documented since November 2026; it used to be a year.
	refreshLife = 180 * 24 * time.Hour
)

// The scopes that a publisher uses.
const (
	scopePublish = "video.publish"
	scopeUpload  = "video.upload"
	scopeBasic   = "user.info.basic"
	scopeProfile = "user.info.profile"
	scopeList    = "video.list"
)

// opQuery is the operation that queries individual posts. It has no name in faults; only `*` matches it.
const opQuery faults.Operation = "read"

// Platform is the simulated TikTok.
type Platform struct {
	simulator.Options
	simulator.Profile
	dialog *oauth.Dialog
	// uploads are the locks of the uploads, by publish id. Requests for the same upload run one at a time.
	uploads simulator.Locks
}

// New returns the simulator. It resumes downloads that a restart interrupted.
func New(opts simulator.Options) *Platform {
	p := &Platform{Options: opts, Profile: profile, dialog: newDialog(opts)}
	p.resume()
	return p
}

// profile describes TikTok's accounts. Refresh tokens rotate. An open_id may start with a minus, as the demo
// account's does.
var profile = simulator.Profile{
	Platform: Name, Label: "TikTok", Prefix: "user",
	ID: simulator.Form{
		Pattern: regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`), Words: "an open_id on TikTok has 1 to 64 letters, digits, minus signs and underscores",
	},
	Username: simulator.Form{
		Pattern: regexp.MustCompile(`^[A-Za-z0-9_.]{1,24}$`), Words: "a username on TikTok has 1 to 24 letters, digits, underscores and full stops",
	},
	Grant: func(a state.Account) state.Terms {
		return state.Terms{
			Scopes: []string{scopeBasic, scopeProfile, scopePublish, scopeUpload, scopeList},
			Access: cmp.Or(a.Settings.TokenTTL, accessLife), Refresh: true, RefreshLife: refreshLife,
		}
	},
	Demo:       simulator.Demo(Name, "-000HeraldDemoAccount00000000001", "herald_demo"),
	DemoAccess: "tiktok-access-demo", DemoRefresh: "tiktok-refresh-demo",
}

// Accounts returns the profile of TikTok's accounts.
func Accounts() simulator.Profile { return profile }

// PostPath returns the path of a post's public page, which is different for photos and videos.
func (p *Platform) PostPath(username, id string) string {
	kind := "/video/"
	if post, _ := p.Store.Post(Name, id); detailOf(post).MediaType == photo {
		kind = "/photo/"
	}
	return "/tiktok/@" + username + kind + id
}

// PagePatterns returns the patterns of the public pages of posts and accounts.
func (*Platform) PagePatterns() []string {
	return []string{"/tiktok/{username}", "/tiktok/{username}/video/{id}", "/tiktok/{username}/photo/{id}"}
}

// Find returns the post or the username that a URL refers to.
func (*Platform) Find(r *http.Request) (post, username string) {
	return r.PathValue("id"), strings.TrimPrefix(r.PathValue("username"), "@")
}

// Links returns no links: TikTok does not linkify URLs in captions.
func (*Platform) Links(string) [][2]int { return nil }

// Register adds the API to mux. TikTok's paths end in a slash and do not exist without it.
func (p *Platform) Register(mux *http.ServeMux) {
	const publish = "POST /tiktok/v2/post/publish/"
	for pattern, handler := range map[string]http.Handler{
		"GET /tiktok/v2/user/info":     p.route(faults.Identity, p.userInfo),
		publish + "creator_info/query": p.route(faults.Identity, p.creatorInfo),
		publish + "video/init":         byBody(p.route(faults.Create, p.directVideo), p.route(faults.Publish, p.directVideo)),
		publish + "inbox/video/init":   byBody(p.route(faults.Create, p.inboxVideo), p.route(faults.Publish, p.inboxVideo)),
		publish + "content/init":       p.route(faults.Publish, p.photos),
		publish + "status/fetch":       p.route(faults.Status, p.status),
		"POST /tiktok/v2/video/list":   p.route(faults.List, p.list),
		"POST /tiktok/v2/video/query":  p.route(opQuery, p.query),
		"POST /tiktok/v2/oauth/token": p.Gate.Handler(faults.Route{
			Platform: Name, Operation: faults.RefreshToken, Dialect: dialect{p}, Account: p.FormAccount(Name), Act: p.token,
		}),
	} {
		mux.Handle(pattern+"/{$}", handler)
		mux.HandleFunc(pattern, p.unknownPath)
	}
	mux.Handle("GET /tiktok/v2/auth/authorize/{$}", p.dialog)
	p.registerUploads(mux)
	mux.HandleFunc("/tiktok/", p.unknownPath)
}

// route returns the handler of an operation that needs an access token.
func (p *Platform) route(op faults.Operation, act func(http.ResponseWriter, *faults.Request)) http.Handler {
	return p.Gate.Handler(faults.Route{Platform: Name, Operation: op, Dialect: dialect{p}, Account: p.BearerAccount(Name), Act: act})
}

// registerUploads adds the upload URLs, which TikTok serves from a separate host. The last chunk publishes the post.
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

// byBody picks the handler by the source named in the body: a chunked upload, or a file that TikTok fetches and
// publishes.
func byBody(upload, pull http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, err := io.ReadAll(io.LimitReader(r.Body, maxInit))
		if err != nil {
			return // the client has disconnected
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

// maxInit is the largest body that byBody reads, in bytes.
const maxInit = 1 << 20

func (p *Platform) unknownPath(w http.ResponseWriter, _ *http.Request) {
	p.fail(w, http.StatusNotFound, "invalid_params", "There is no such path.")
}
