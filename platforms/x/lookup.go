// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

const (
	// pageSize is the greatest max_results of GET /2/users/{id}/tweets.
	pageSize = 100

	// maxPages bounds one look-up: X lists no more than an account's latest
	// 3200 posts.
	maxPages = 32
)

const (
	msgNoTimeline  = "X did not give the account's timeline"
	msgTooManyPage = "the account has published more since than X lists, so Herald cannot tell whether the post is among it; look for the post by hand"
)

// Lookup searches the account's timeline for the job's text, among what was
// created at job.SearchFrom or later.
//
// What hangs from another post than the job's, and what belongs to other jobs,
// is passed over. Absence is
// only reported if X listed everything; otherwise it is an error.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	search := newSearch(job)
	cursor := ""
	for range maxPages {
		resp, failure := p.read(ctx, "list", timelinePath(job, cursor), job.Account.Token)
		if failure != nil {
			return platforms.LookupResult{}, failure
		}
		page, failure := p.readPage(resp)
		if failure != nil {
			return platforms.LookupResult{}, failure
		}
		search.page(page.entries)
		if page.next == "" {
			return search.finding(p, job.Account), nil
		}
		cursor = page.next
	}
	return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgTooManyPage)
}

// timelinePath asks for one page of an account's own posts. Replies stay in,
// because leaving them out would leave out the cards of a tree as well.
func timelinePath(job platforms.Job, cursor string) string {
	query := url.Values{
		"max_results":  {strconv.Itoa(pageSize)},
		"exclude":      {"retweets"},
		"tweet.fields": {"created_at,text,entities,referenced_tweets,note_tweet,attachments"},
	}
	if since := idBefore(job.SearchFrom); since != "" {
		query.Set("since_id", since)
	}
	if cursor != "" {
		query.Set("pagination_token", cursor)
	}
	return "/2/users/" + url.PathEscape(job.Account.ID) + "/tweets?" + query.Encode()
}

// timelinePage is one page of a timeline.
type timelinePage struct {
	entries []map[string]any
	next    string
}

// readPage reads a page. X leaves out "data" when a page is empty: what proves
// an answer to be a page is then its "meta". Errors beside it mean that
// something is missing.
func (p *Platform) readPage(resp *transport.Response) (timelinePage, *platforms.Error) {
	doc, _ := decodeObject(resp.Body)
	meta := object(doc["meta"])
	if meta == nil && list(doc["data"]) == nil || len(list(doc["errors"])) > 0 {
		return timelinePage{}, p.silentRefusal(resp, msgNoTimeline)
	}
	page := timelinePage{next: textOf(meta["next_token"])}
	for _, v := range list(doc["data"]) {
		entry := object(v)
		if !validID(textOf(entry["id"])) {
			return timelinePage{}, platforms.Errorf(platforms.ClassUnknown, msgNoTimeline)
		}
		page.entries = append(page.entries, entry)
	}
	if count := textOf(meta["result_count"]); count != "" && count != strconv.Itoa(len(page.entries)) {
		return timelinePage{}, platforms.Errorf(platforms.ClassUnknown, msgNoTimeline)
	}
	return page, nil
}

// search collects the posts that fit a job.
type search struct {
	job  platforms.Job
	text wanted
	// media are the ids of the files that the post shows, if any.
	media []string
	found map[string]time.Time
	first string
}

func newSearch(job platforms.Job) *search {
	return &search{job: job, text: want(job.Content.Text), media: job.FileIDs(validID), found: map[string]time.Time{}}
}

// page looks at the posts of one page.
func (s *search) page(entries []map[string]any) {
	for _, entry := range entries {
		id := textOf(entry["id"])
		created := createdAt(id, entry)
		switch {
		case !created.IsZero() && created.Before(s.job.SearchFrom.Truncate(time.Millisecond)):
		case repliedTo(entry) != s.job.Content.InReplyTo, !s.matches(entry):
		case s.job.Taken != nil && s.job.Taken(id):
		default:
			s.found[id] = created
			if earlier, ok := s.found[s.first]; !ok || created.Before(earlier) {
				s.first = id
			}
		}
	}
}

// matches tells whether a listed post is the job's. What was uploaded for one
// job is shown by no other post, so that files say more than the text, which X
// gives back with an address for them behind it.
func (s *search) matches(entry map[string]any) bool {
	if s.media == nil {
		return s.text.matches(entry)
	}
	keys := list(object(entry["attachments"])["media_keys"])
	if len(keys) != len(s.media) {
		return false
	}
	for i, key := range keys {
		// A key is the number of the kind of media, and the id.
		if _, id, _ := strings.Cut(textOf(key), "_"); id != s.media[i] {
			return false
		}
	}
	return true
}

// finding names the earliest match.
func (s *search) finding(p *Platform, account platforms.Account) platforms.LookupResult {
	if len(s.found) == 0 {
		return platforms.LookupResult{}
	}
	return platforms.LookupResult{
		Matches:     len(s.found),
		ExternalID:  s.first,
		ExternalURL: p.postURL(account, s.first),
		PostedAt:    s.found[s.first],
	}
}

// createdAt is when a post was created, by its id or else by its own word.
func createdAt(id string, entry map[string]any) time.Time {
	if at, ok := snowflakeTime(id); ok {
		return at
	}
	at, err := time.Parse(time.RFC3339, textOf(entry["created_at"]))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// repliedTo is the post that a post hangs from; empty for one that stands alone.
// One that hangs from what X does not name hangs from "?".
func repliedTo(entry map[string]any) string {
	for _, v := range list(entry["referenced_tweets"]) {
		if reference := object(v); textOf(reference["type"]) == "replied_to" {
			return cmp.Or(textOf(reference["id"]), "?")
		}
	}
	return ""
}
