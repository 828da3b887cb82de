// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// timeForm is X's time format.
const timeForm = "2006-01-02T15:04:05.000Z"

const (
	defaultResults = 10
	minResults     = 5
	maxResults     = 100
)

// timelineAnswer is the body of a timeline; X omits data if there are no posts.
type timelineAnswer struct {
	Data []map[string]any `json:"data,omitempty"`
	// Includes is set if expansions were requested.
	Includes map[string][]map[string]any `json:"includes,omitzero"`
	Errors   []resourceError             `json:"errors,omitempty"`
	Meta     *timelineMeta               `json:"meta,omitempty"`
}

type timelineMeta struct {
	ResultCount int    `json:"result_count"`
	NewestID    string `json:"newest_id,omitempty"`
	OldestID    string `json:"oldest_id,omitempty"`
	NextToken   string `json:"next_token,omitempty"`
}

// resourceError reports, within a 200 response, that an object cannot be shown.
type resourceError struct {
	Value  string `json:"value"`
	Detail string `json:"detail"`
	Title  string `json:"title"`
	Type   string `json:"type"`
}

// timeline handles GET /2/users/{id}/tweets.
func (p *Platform) timeline(w http.ResponseWriter, r *faults.Request) {
	reader, ok := p.authorized(w, r, callTimeline, scopeRead, scopeUsers)
	if !ok {
		return
	}
	id := r.PathValue("id")
	query := newQuery(r.URL.Query())
	part, asked := query.timeline()
	if !idPattern.MatchString(id) {
		query.reject("id", id, "is not a valid user id")
	}
	if len(query.bad) > 0 {
		p.fail(w, callTimeline, invalid(query.bad...))
		return
	}
	author, found := p.Store.Account(state.Key{Platform: Name, ID: id})
	if missing := unseen("user", id, found, author, reader); missing != nil {
		p.succeed(w, callTimeline, http.StatusOK, timelineAnswer{Errors: []resourceError{*missing}})
		return
	}
	part.Lag = r.ListLag
	posts, more, err := p.Store.Timeline(author.Key, part)
	if err != nil {
		p.fail(w, callTimeline, p.broken("posts could not be listed", id, err))
		return
	}
	out := p.timelineAnswer(posts, more, asked.fields)
	out.Includes = p.includes(r, posts, asked)
	p.succeed(w, callTimeline, http.StatusOK, out)
}

// unseen returns the error for a user or post that the reader cannot see, or nil if they can see it.
func unseen(kind, id string, found bool, author, reader state.Account) *resourceError {
	switch {
	case !found:
		return &resourceError{id, "Could not find " + kind + " with id: [" + id + "].", "Not Found Error", problemURL + "resource-not-found"}
	case author.Settings.Private && author.Key != reader.Key:
		return &resourceError{
			id, "Sorry, you are not authorized to see the " + kind + " with id: [" + id + "].", "Authorization Error", notAuthorized,
		}
	default:
		return nil
	}
}

func (p *Platform) timelineAnswer(posts []state.Post, more bool, fields []string) timelineAnswer {
	out := timelineAnswer{Meta: &timelineMeta{ResultCount: len(posts)}}
	for _, post := range posts {
		out.Data = append(out.Data, p.tweetObject(post, fields))
	}
	if n := len(posts); n > 0 {
		out.Meta.NewestID, out.Meta.OldestID = posts[0].ID, posts[n-1].ID
		if more {
			out.Meta.NextToken = pageToken(posts[n-1].ID)
		}
	}
	return out
}

// tweetObject renders a post with the default and the requested fields.
func (p *Platform) tweetObject(post state.Post, fields []string) map[string]any {
	shown := render(post)
	out := map[string]any{"id": post.ID, "text": shown.text, "edit_history_post_ids": []string{post.ID}}
	for _, field := range fields {
		if value := p.tweetField(field, post, shown); value != nil {
			out[field] = value
		}
	}
	return out
}

// tweetField returns nil for fields that the post does not have and for those that every post has.
func (p *Platform) tweetField(field string, post state.Post, shown rendered) any {
	switch field {
	case "attachments":
		var keys []string
		for _, a := range detailOf(post).Media {
			keys = append(keys, a.Key)
		}
		if keys != nil {
			return map[string]any{"media_keys": keys}
		}
	case "author_id":
		return post.AccountID
	case "conversation_id":
		return post.Root
	case "created_at":
		return post.CreatedAt().Format(timeForm)
	case "username":
		author, _ := p.Store.Account(state.Key{Platform: Name, ID: post.AccountID})
		return author.Username
	case "display_text_range":
		return []int{shown.front, shown.shown}
	case "edit_history_tweet_ids":
		return []string{post.ID}
	case "entities":
		if urls := append(slices.Clone(shown.urls), p.mediaLinks(post, shown.media, detailOf(post).Media)...); len(urls) > 0 {
			return map[string]any{"urls": urls}
		}
	case "in_reply_to_user_id":
		if parent, ok := p.Store.Post(Name, post.InReplyTo); ok {
			return parent.AccountID
		}
	case "referenced_tweets", "referenced_posts":
		if post.InReplyTo != "" {
			return []map[string]string{{"type": "replied_to", "id": post.InReplyTo}}
		}
	}
	return nil
}

// pageToken encodes the page of posts older than oldest.
func pageToken(oldest string) string {
	return base64.RawURLEncoding.EncodeToString([]byte("older:" + oldest))
}

func openPageToken(token string) (state.Stamp, bool) {
	content, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return state.Stamp{}, false
	}
	id, found := strings.CutPrefix(string(content), "older:")
	if !found {
		return state.Stamp{}, false
	}
	return stampOf(id)
}

// query reads each parameter of a GET request once, and collects the errors.
type query struct {
	values url.Values
	known  []string
	bad    []badParameter
}

func newQuery(values url.Values) *query { return &query{values: values} }

func (q *query) reject(name, value, what string) {
	q.bad = append(q.bad, badParameter{
		Parameters: map[string][]string{name: {value}},
		Message:    fmt.Sprintf("The %#q query parameter value [%s] %s", name, value, what),
	})
}

func (q *query) get(name string) string {
	q.known = append(q.known, name)
	return q.values.Get(name)
}

// list reads comma-separated values that must all be in allowed.
func (q *query) list(name string, allowed []string) []string {
	value := q.get(name)
	if value == "" {
		return nil
	}
	values := strings.Split(value, ",")
	for _, v := range values {
		if !slices.Contains(allowed, v) {
			q.reject(name, v, "is not one of ["+strings.Join(allowed, ",")+"]")
		}
	}
	return values
}

// rejectUnknown rejects the parameters that have not been read.
func (q *query) rejectUnknown() {
	for name, values := range q.values {
		if !slices.Contains(q.known, name) {
			q.bad = append(q.bad, badParameter{
				Parameters: map[string][]string{name: values},
				Message:    fmt.Sprintf("The query parameter [%s] is not one of [%s]", name, strings.Join(q.known, ",")),
			})
		}
	}
}

func (q *query) id(name string) state.Stamp {
	value := q.get(name)
	if value == "" {
		return state.Stamp{}
	}
	stamp, ok := stampOf(value)
	if !ok || !idPattern.MatchString(value) {
		q.reject(name, value, "is not a valid post id")
	}
	return stamp
}

// timeline reads the parameters of a timeline: its range, and the form of its posts.
func (q *query) timeline() (part state.Range, asked shape) {
	part = state.Range{
		After: q.id("since_id"), Before: q.id("until_id"), From: q.time("start_time"), To: q.time("end_time"), Limit: defaultResults,
	}
	if value := q.get("max_results"); value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < minResults || n > maxResults {
			q.reject("max_results", value, fmt.Sprintf("is not between %d and %d", minResults, maxResults))
		}
		part.Limit = n
	}
	if token := q.get("pagination_token"); token != "" {
		var ok bool
		if part.Before, ok = openPageToken(token); !ok {
			q.reject("pagination_token", token, "is not a token that an earlier page gave")
		}
	}
	if slices.Contains(q.list("exclude", []string{"replies", "retweets"}), "replies") { // there are no retweets
		part.Keep = func(post *state.Post) bool { return post.InReplyTo == "" }
	}
	asked = q.shape()
	q.rejectUnknown()
	return part, asked
}

// time reads a time with second precision.
func (q *query) time(name string) time.Time {
	value := q.get(name)
	if value == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		q.reject(name, value, "is not a time of RFC 3339")
	}
	return at
}
