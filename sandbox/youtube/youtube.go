// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/links"
	"github.com/herald-social/herald/sandbox/oauth"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "youtube"

// accessLife is the lifetime of Google's access tokens.
const accessLife = time.Hour

// The scopes that a publisher uses.
const (
	scopeUpload = "https://www.googleapis.com/auth/youtube.upload"
	scopeRead   = "https://www.googleapis.com/auth/youtube.readonly"
	scopeAll    = "https://www.googleapis.com/auth/youtube"
	scopeSSL    = "https://www.googleapis.com/auth/youtube.force-ssl" // equivalent to scopeAll
)

// opDelete is the operation that deletes a video. It has no name in faults; only `*` matches it.
const opDelete faults.Operation = "delete"

// Platform is the simulated YouTube. Its accounts are channels.
type Platform struct {
	simulator.Options
	simulator.Profile
	dialog *oauth.Dialog
	// sessions are the locks of the sessions, by id. Requests to the same session run one at a time.
	sessions simulator.Locks
}

// New returns the simulator.
func New(opts simulator.Options) *Platform {
	return &Platform{Options: opts, Profile: profile, dialog: newDialog(opts)}
}

// profile describes channels. Refresh tokens do not rotate. A real channel id is UC followed by 22 letters; tests may
// use a shorter one.
var profile = simulator.Profile{
	Platform: Name, Label: "YouTube", Prefix: "channel-",
	ID: simulator.Form{
		Pattern: regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`), Words: "a channel id on YouTube has 1 to 64 letters, digits, minus signs and underscores",
	},
	Username: simulator.Form{
		Pattern: regexp.MustCompile(`^[A-Za-z0-9_.-]{1,30}$`),
		Words:   "a handle on YouTube has 1 to 30 letters, digits, underscores, minus signs and full stops, without @",
	},
	Grant: func(a state.Account) state.Terms {
		return state.Terms{
			Scopes: []string{scopeUpload, scopeRead}, Access: cmp.Or(a.Settings.TokenTTL, accessLife), Refresh: true, Fixed: true,
		}
	},
	Demo:       simulator.Demo(Name, "UCHeraldDemo000000000001", "herald_demo"),
	DemoAccess: "youtube-access-demo", DemoRefresh: "youtube-refresh-demo",
}

// Accounts returns the profile of channels.
func Accounts() simulator.Profile { return profile }

// PostPath returns the path of a video's public page.
func (*Platform) PostPath(_, id string) string { return "/youtube/watch?v=" + id }

// PagePatterns returns the patterns of the public pages of videos and channels.
func (*Platform) PagePatterns() []string {
	return []string{"/youtube/{name}", "/youtube/channel/{channel}"}
}

// Find returns the video or the username that a URL refers to.
func (p *Platform) Find(r *http.Request) (post, username string) {
	if id := r.PathValue("channel"); id != "" {
		account, _ := p.Store.Account(state.Key{Platform: Name, ID: id})
		return "", account.Username
	}
	if r.PathValue("name") == "watch" {
		return cmp.Or(r.URL.Query().Get("v"), "unknown"), ""
	}
	return "", strings.TrimPrefix(r.PathValue("name"), "@")
}

// Links returns the links in text as pairs of byte offsets, in order.
func (*Platform) Links(text string) [][2]int { return links.Find(text) }

// uploadPath is the path of video uploads.
const uploadPath = "/youtube/upload/youtube/v3/videos"

// Register adds the API to mux.
func (p *Platform) Register(mux *http.ServeMux) {
	mux.Handle("POST /youtube/token", p.Gate.Handler(faults.Route{
		Platform: Name, Operation: faults.RefreshToken, Dialect: dialect{}, Account: p.FormAccount(Name), Act: p.token,
	}))
	for pattern, route := range map[string]struct {
		op  faults.Operation
		act func(http.ResponseWriter, *faults.Request)
	}{
		"GET /youtube/youtube/v3/channels":               {faults.Identity, p.channels},
		"GET /youtube/youtube/v3/videos":                 {faults.Status, p.videos},
		"DELETE /youtube/youtube/v3/videos":              {opDelete, p.deleteVideo},
		"GET /youtube/youtube/v3/playlistItems":          {faults.List, p.playlistItems},
		"POST /youtube/upload/youtube/v3/thumbnails/set": {faults.Upload, p.setThumbnail},
	} {
		mux.Handle(pattern, p.Gate.Handler(faults.Route{
			Platform: Name, Operation: route.op, Dialect: dialect{}, Account: p.BearerAccount(Name), Act: route.act,
			Streams: route.op == faults.Upload,
		}))
	}
	mux.Handle("GET /youtube/o/oauth2/v2/auth", p.dialog)
	p.registerSessions(mux)
	mux.HandleFunc("/youtube/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, problemFor(http.StatusNotFound))
	})
}

// registerSessions adds the upload endpoints: starting a session, uploading a video in one request, and the session
// URLs.
func (p *Platform) registerSessions(mux *http.ServeMux) {
	by := map[faults.Operation]http.Handler{}
	for _, op := range []faults.Operation{faults.Upload, faults.Publish, faults.Status} {
		by[op] = p.Gate.Handler(faults.Route{
			Platform: Name, Operation: op, Dialect: dialect{}, Account: p.sessionAccount, Act: p.serveUpload, Streams: true,
		})
	}
	begin := faults.Route{
		Platform: Name, Operation: faults.Create, Dialect: dialect{}, Account: p.BearerAccount(Name), Act: p.start,
	}
	whole := begin
	whole.Operation, whole.Act, whole.Streams = faults.Publish, p.insert, true
	start, insert := p.Gate.Handler(begin), p.Gate.Handler(whole)
	mux.HandleFunc("PUT "+uploadPath, func(w http.ResponseWriter, r *http.Request) { by[operation(r)].ServeHTTP(w, r) })
	mux.HandleFunc("POST "+uploadPath, func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case query.Has("upload_id"):
			by[operation(r)].ServeHTTP(w, r)
		case query.Get("uploadType") == multipartRelated:
			insert.ServeHTTP(w, r)
		default:
			start.ServeHTTP(w, r)
		}
	})
}
