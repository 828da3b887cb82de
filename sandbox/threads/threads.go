// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/links"
	"github.com/herald-social/herald/sandbox/state"
)

// Name is the platform's name in the control API and the first segment of its paths.
const Name = "threads"

// The scopes that matter to a publisher.
const (
	scopeBasic         = "threads_basic"
	scopePublish       = "threads_content_publish"
	scopeManageReplies = "threads_manage_replies"
	scopeReadReplies   = "threads_read_replies"
)

// Operations of Threads that faults cannot name, only match with `*`.
const (
	opRead  faults.Operation = "read" // one published post
	opLimit faults.Operation = "publishing_limit"
)

// Platform is the simulated Threads.
type Platform struct{ *graph.API }

// New returns the simulator. It goes on with what a restart interrupted.
func New(opts graph.Options) *Platform {
	p := &Platform{&graph.API{
		Options: opts, Platform: Name, Versions: []string{"v1.0"}, ParamType: "THApiException", PermissionCode: 10,
		Limit: graph.Limit{
			Status: http.StatusForbidden, Code: 4, Message: "(#4) Application request limit reached", Usage: Name,
		},
	}}
	p.resume()
	return p
}

// Name is "threads".
func (*Platform) Name() string { return Name }

// Title is the platform's name for people.
func (*Platform) Title() string { return "Threads" }

// Terms are what an account's owner grants: a token of 60 days that renews itself.
func (*Platform) Terms(a state.Account) state.Terms {
	return state.Terms{
		Scopes: []string{scopeBasic, scopePublish, scopeManageReplies, scopeReadReplies},
		Access: cmp.Or(a.Settings.TokenTTL, graph.LongLife),
	}
}

// Demo is the account that is there from the start. Its token is well known: whoever reaches the sandbox may use it.
func Demo() (state.Account, state.Tokens) {
	account := state.Account{
		Key: state.Key{Platform: Name, ID: "24000000000000001"}, Username: "herald_demo", DisplayName: "Herald Demo",
	}
	return account, state.Tokens{Access: "threads-access-demo", Scopes: (*Platform)(nil).Terms(account).Scopes}
}

var (
	idPattern       = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
	usernamePattern = regexp.MustCompile(`^[A-Za-z0-9_.]{1,30}$`)
)

// CheckAccount says what is wrong with an account that a test wants to make.
func (*Platform) CheckAccount(id, username string) error {
	if !idPattern.MatchString(id) {
		return errors.New("an account id on Threads is a number of up to 19 digits")
	}
	if !usernamePattern.MatchString(username) {
		return errors.New("a username on Threads has 1 to 30 letters, digits, underscores and full stops")
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

// PostPath is the path of a post's public page.
func (*Platform) PostPath(username, id string) string {
	return "/threads/@" + username + "/post/" + graph.Shortcode(id)
}

// PagePatterns are where posts and accounts have their pages.
func (*Platform) PagePatterns() []string {
	return []string{"/threads/{username}", "/threads/{username}/post/{code}"}
}

// Find says which post, or else whose page, is at an address.
func (*Platform) Find(r *http.Request) (post, username string) {
	if code := r.PathValue("code"); code != "" {
		return cmp.Or(graph.IDOf(code), "unknown"), ""
	}
	return "", strings.TrimPrefix(r.PathValue("username"), "@")
}

// Links returns the addresses in a text as pairs of byte offsets, in order.
func (*Platform) Links(text string) [][2]int { return links.Find(text) }

// Register adds the API to mux.
func (p *Platform) Register(mux *http.ServeMux) {
	refresh := p.Route(faults.RefreshToken, p.Refresh("th_refresh_token", scopeBasic, p.Terms))
	mux.Handle("GET /threads/refresh_access_token", refresh)

	// The API has a mux of its own: its paths and those of the pages overlap.
	api := http.NewServeMux()
	identity, status, read := p.Route(faults.Identity, p.user), p.Route(faults.Status, p.status), p.Route(opRead, p.read)
	api.HandleFunc("GET /threads/{version}/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		_, isAccount := p.Store.Account(state.Key{Platform: Name, ID: id})
		_, isPost := p.Store.Post(Name, id)
		switch {
		case id == "me", isAccount:
			identity.ServeHTTP(w, r)
		case isPost:
			read.ServeHTTP(w, r)
		default:
			status.ServeHTTP(w, r)
		}
	})
	api.Handle("POST /threads/{version}/{id}/threads", p.Route(faults.Create, p.create))
	api.Handle("POST /threads/{version}/{id}/threads_publish", p.Route(faults.Publish, p.publish))
	api.Handle("GET /threads/{version}/{id}/threads", p.Route(faults.List, p.posts))
	api.Handle("GET /threads/{version}/{id}/replies", p.Route(faults.List, p.replies))
	api.Handle("GET /threads/{version}/{id}/threads_publishing_limit", p.Route(opLimit, p.limit))
	api.HandleFunc("/", p.Refuse)
	mux.Handle("/threads/", api)
}
