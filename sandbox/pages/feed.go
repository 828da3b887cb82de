// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/state"
)

const (
	// feedPosts is the number of an account's posts that one page of its feed covers. Their chains are shown in full.
	feedPosts = 50
	// groupAccounts is the number of accounts per platform on the first page.
	groupAccounts = 50
)

// profile is the view of an account.
type profile struct {
	Name, Handle, Avatar, Path string
	Private                    bool
}

func profileOf(a state.Account) profile {
	return profile{
		Name: a.DisplayName, Handle: "@" + a.Username, Avatar: "/_assets/avatar/" + a.Platform + "/" + a.ID + ".svg",
		Path: "/accounts/" + a.Platform + "/" + a.ID, Private: a.Settings.Private,
	}
}

// postView is the view of a post.
type postView struct {
	profile
	ID, Link string
	At, Ago  string // machine-readable and short
	Full     string // human-readable, in full
	Title    string
	Text     []span
	Media    []mediaView
	Badge    string // the audience, if it is restricted
	Above    bool   // draws a line to the post above
	Below    bool   // draws a line to the reply below
	Focus    bool   // the post that the page is about
}

type indexPage struct{ Groups []*group }

type group struct {
	// On is the platform's name in paths and styles.
	On       string
	Title    string
	Accounts []accountRow
	// Hidden is the number of accounts that are not shown.
	Hidden int
}

type accountRow struct {
	profile
	Posts, Last string
}

// index lists the accounts.
func (s *Site) index(w http.ResponseWriter, _ *http.Request) {
	groups, page := map[string]*group{}, indexPage{}
	for _, name := range s.order {
		groups[name] = &group{On: name, Title: s.platforms[name].Title()}
		page.Groups = append(page.Groups, groups[name])
	}
	now := s.clock.Now()
	for _, sum := range s.store.Summaries() {
		of := groups[sum.Platform]
		if of == nil {
			continue // the platform existed in an earlier version only
		}
		if len(of.Accounts) == groupAccounts {
			of.Hidden++
			continue
		}
		row := accountRow{profile: profileOf(sum.Account), Posts: postCount(sum.Posts)}
		if !sum.LastPost.IsZero() {
			row.Last = ago(now, sum.LastPost)
		}
		of.Accounts = append(of.Accounts, row)
	}
	render(w, http.StatusOK, page.render())
}

type accountPage struct {
	profile
	// On is the platform's name in paths and styles.
	On       string
	Platform string
	Posts    string
	Joined   string
	Threads  [][]postView
	Older    string
}

// account shows an account's feed, newest posts first, with complete chains.
func (s *Site) account(w http.ResponseWriter, r *http.Request) {
	platform := s.platforms[r.PathValue("platform")]
	key := state.Key{Platform: r.PathValue("platform"), ID: r.PathValue("id")}
	account, ok := s.store.Account(key)
	if platform == nil || !ok {
		Message(w, http.StatusNotFound, "No such account", "The sandbox knows no account "+key.ID+" on "+key.Platform+".")
		return
	}
	before, _ := state.ParseStamp(r.URL.Query().Get("before")) // zero for the newest posts
	posts, more, err := s.store.Timeline(key, state.Range{Before: before, Limit: feedPosts})
	if err != nil {
		Message(w, http.StatusInternalServerError, "Something is broken", err.Error())
		return
	}
	page := accountPage{
		profile: profileOf(account), On: platform.Name(), Platform: platform.Title(), Posts: postCount(s.store.PostCount(key)),
		Joined: account.CreatedAt.Format("January 2006"),
	}
	seen := map[string]bool{}
	for _, post := range posts {
		if !seen[post.Root] {
			seen[post.Root] = true
			page.Threads = append(page.Threads, s.thread(platform, post))
		}
	}
	if more {
		page.Older = profileOf(account).Path + "?before=" + posts[len(posts)-1].Stamp.String()
	}
	render(w, http.StatusOK, page.render())
}

// thread shows the whole chain of a post.
func (s *Site) thread(platform Platform, post state.Post) []postView {
	chain := s.store.Chain(post.Platform, post.Root)
	out := make([]postView, 0, len(chain))
	for i, p := range chain {
		view := s.view(platform, p)
		view.Above, view.Below = i > 0, i < len(chain)-1
		out = append(out, view)
	}
	return out
}

func (s *Site) view(platform Platform, p state.Post) postView {
	account, _ := s.store.Account(state.Key{Platform: p.Platform, ID: p.AccountID})
	at := p.CreatedAt()
	return postView{
		profile: profileOf(account), ID: p.ID, Link: platform.PostPath(account.Username, p.ID),
		At: at.Format(time.RFC3339Nano), Ago: ago(s.clock.Now(), at), Full: at.Format("15:04:05 · Jan 2, 2006 · UTC"),
		Title: p.Title, Text: spans(platform, p.Text), Media: s.mediaOf(p), Badge: badge(p),
	}
}

// onlyMe is the badge of posts that only their author can see.
const onlyMe = "Only me"

// badge returns the restricted audience of a post, or "".
func badge(p state.Post) string {
	switch {
	case p.Draft:
		return "Not public"
	case strings.EqualFold(p.Privacy, "SELF_ONLY"), strings.EqualFold(p.Privacy, "private"):
		return onlyMe
	case p.Privacy == "FOLLOWER_OF_CREATOR", p.Privacy == "MUTUAL_FOLLOW_FRIENDS":
		return "Followers"
	case p.Privacy == "unlisted":
		return "Unlisted"
	default:
		return ""
	}
}

type postPage struct {
	author profile
	// On is the platform's name in paths and styles.
	On       string
	Platform string
	Thread   []postView
	Back     string
}

// post shows a post within its chain, at the post's public address.
func (s *Site) post(w http.ResponseWriter, r *http.Request, platform Platform, id string) {
	post, ok := s.store.Post(platform.Name(), id)
	if !ok {
		Message(w, http.StatusNotFound, "This post does not exist", "It was never made here, or it has been deleted.")
		return
	}
	author, _ := s.store.Account(state.Key{Platform: post.Platform, ID: post.AccountID})
	if author.Settings.Private || post.Draft || badge(post) == onlyMe {
		Message(w, http.StatusForbidden, "This post is protected", "Only approved followers, or its author, can see it.")
		return
	}
	if path := platform.PostPath(author.Username, post.ID); path != r.URL.RequestURI() {
		http.Redirect(w, r, path, http.StatusFound)
		return
	}
	page := postPage{
		author: profileOf(author), On: platform.Name(), Platform: platform.Title(), Thread: s.thread(platform, post),
		Back: profileOf(author).Path,
	}
	for i := range page.Thread {
		page.Thread[i].Focus = page.Thread[i].ID == post.ID
	}
	render(w, http.StatusOK, page.render())
}

// profile redirects from an account's address on a platform to its feed.
func (s *Site) profile(w http.ResponseWriter, r *http.Request, platform Platform, username string) {
	account, ok := s.store.AccountNamed(platform.Name(), username)
	if !ok {
		Message(w, http.StatusNotFound, "This account does not exist", "Try another name.")
		return
	}
	http.Redirect(w, r, profileOf(account).Path, http.StatusFound)
}

func postCount(n int) string {
	if n == 1 {
		return "1 post"
	}
	return withUnit(n, " posts")
}

func withUnit(n int, unit string) string { return strconv.Itoa(n) + unit }
