// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/links"
	"github.com/herald-social/herald/sandbox/oauth"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "threads"

// The scopes that a publisher uses.
const (
	scopeBasic         = "threads_basic"
	scopePublish       = "threads_content_publish"
	scopeManageReplies = "threads_manage_replies"
	scopeReadReplies   = "threads_read_replies"
	scopeDelete        = "threads_delete"
)

// Threads operations that have no name in faults; only `*` matches them.
const (
	opRead  faults.Operation = "read" // one published post
	opLimit faults.Operation = "publishing_limit"
)

// postQuota is the documented number of posts per profile in any 24 hours.
const postQuota = 250

// Platform is the simulated Threads.
type Platform struct {
	*graph.API
	api http.Handler
}

// New returns the simulator and resumes downloads that a restart interrupted. Its lists are paged only by cursor, as in
// Meta's sample in "Retrieve Threads".
func New(opts simulator.Options) *Platform {
	p := &Platform{API: &graph.API{
		Options: opts, Profile: profile, Newest: 1, CursorsOnly: true, ParamType: "THApiException", PermissionCode: 10,
		Limit: graph.Limit{
			Status: http.StatusForbidden, Code: 4, Message: "(#4) Application request limit reached", Usage: Name,
		},
		Block: graph.SpamBlock(),
	}}
	p.Resume(p.fetch)
	return p
}

// profile describes Threads accounts. A token is valid for 60 days and can be refreshed.
var profile = simulator.Profile{
	Platform: Name, Label: "Threads", Prefix: "u_",
	ID: simulator.Form{
		Pattern: regexp.MustCompile(`^[1-9][0-9]{0,18}$`), Words: "an account id on Threads is a number of up to 19 digits",
	},
	Username: simulator.Form{
		Pattern: regexp.MustCompile(`^[A-Za-z0-9_.]{1,30}$`), Words: "a username on Threads has 1 to 30 letters, digits, underscores and full stops",
	},
	Grant: func(a state.Account) state.Terms {
		return state.Terms{
			Scopes: []string{scopeBasic, scopePublish, scopeManageReplies, scopeReadReplies, scopeDelete},
			Access: cmp.Or(a.Settings.TokenTTL, graph.LongLife),
		}
	},
	Demo:       simulator.Demo(Name, "24000000000000001", "herald_demo"),
	DemoAccess: "threads-access-demo",
}

// Accounts returns the profile of Threads' accounts.
func Accounts() simulator.Profile { return profile }

// PostPath returns the path of a post's public page.
func (*Platform) PostPath(username, id string) string {
	return "/threads/@" + username + "/post/" + graph.Shortcode(id)
}

// PagePatterns returns the patterns of the public pages of posts and accounts.
func (*Platform) PagePatterns() []string {
	return []string{"/threads/{username}", "/threads/{username}/post/{code}"}
}

// Find returns the post or the username that a URL refers to.
func (*Platform) Find(r *http.Request) (post, username string) {
	if code := r.PathValue("code"); code != "" {
		return cmp.Or(graph.IDOf(code), "unknown"), ""
	}
	return "", strings.TrimPrefix(r.PathValue("username"), "@")
}

// Links returns the links in text as pairs of byte offsets, in order.
func (*Platform) Links(text string) [][2]int { return links.Find(text) }

// Register adds the API to mux.
func (p *Platform) Register(mux *http.ServeMux) {
	mux.Handle("GET /threads/refresh_access_token", p.Route(faults.RefreshToken, p.Refresh("th_refresh_token", scopeBasic)))

	dialog := p.NewDialog(nil)
	mux.Handle("GET /threads/oauth/authorize", dialog)
	mux.Handle("POST /threads/oauth/access_token", p.Route(graph.OpExchange, p.ExchangeCode(dialog, connected)))
	mux.Handle("GET /threads/access_token", p.Route(graph.OpExchange, p.Lengthen("th_exchange_token", scopeBasic)))

	// The API has its own mux because its paths overlap with page paths.
	api := http.NewServeMux()
	identity := p.Route(faults.Identity, p.user)
	api.Handle("GET /threads/{version}/{id}", p.ByID(identity, identity, p.Route(opRead, p.read), p.Route(faults.Status, p.status)))
	api.Handle("DELETE /threads/{version}/{id}", p.Route(graph.OpDelete, p.remove))
	api.Handle("POST /threads/{version}/{id}/threads", p.Route(faults.Create, p.create))
	api.Handle("POST /threads/{version}/{id}/threads_publish", p.Route(faults.Publish, p.publish))
	api.Handle("GET /threads/{version}/{id}/threads", p.Route(faults.List, p.list(false, scopeBasic)))
	api.Handle("GET /threads/{version}/{id}/replies", p.Route(faults.List, p.list(true, scopeBasic, scopeReadReplies)))
	api.Handle("GET /threads/{version}/{id}/threads_publishing_limit", p.Route(opLimit, p.limit))
	api.Handle("GET /threads/{version}/debug_token", p.Route(graph.OpExchange, p.Inspect))
	api.HandleFunc("/", p.Refuse)
	p.api = api
	mux.Handle("/threads/", versioned(api))
}

// connected returns the extra field in the first token's response: the account's id, as a number.
func connected(to oauth.Grant) map[string]any {
	return map[string]any{"user_id": json.Number(to.Account.ID)}
}

// version is the first segment of the API's paths. It may be omitted, because the API has never had another version.
const version = "v1.0"

var versionPattern = regexp.MustCompile(`^/threads/v[0-9]+\.[0-9]+/`)

// versioned adds the version to paths without one.
func versioned(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !versionPattern.MatchString(r.URL.Path) {
			r = r.Clone(r.Context())
			r.URL.Path = "/threads/" + version + strings.TrimPrefix(r.URL.Path, "/threads")
			r.URL.RawPath = ""
		}
		api.ServeHTTP(w, r)
	})
}

var nodePattern = regexp.MustCompile(`^(me|[0-9]+)$`)

// APIAt returns the API if the request is for the API and not for a page: without a version, /me and node ids look like
// profiles.
func (p *Platform) APIAt(r *http.Request) http.Handler {
	if nodePattern.MatchString(r.PathValue("username")) {
		return versioned(p.api)
	}
	return nil
}

// user handles GET /me, and GET /{id} for the account itself.
func (p *Platform) user(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic)
	if bad != nil {
		return nil, bad
	}
	return c.Show(graph.Node{
		Type: "ThreadsUser",
		Values: map[string]any{
			"id": account.ID, "username": account.Username, "name": account.DisplayName, "is_verified": false,
			"threads_profile_picture_url": p.Avatar(c.Request.Request, account),
		},
		Known: []string{"id", "username", "name", "threads_profile_picture_url", "is_verified"}, Default: []string{"id"},
	})
}

// limit handles GET /{id}/threads_publishing_limit.
func (p *Platform) limit(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic, scopePublish)
	if bad != nil {
		return nil, bad
	}
	return c.Quota("ThreadsPublishingLimit", account, postQuota)
}
