// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/listing"
)

const (
	// pageSize is the maximum value of max_results in GET /2/users/{id}/tweets.
	pageSize = 100

	// maxPages bounds one lookup. X lists only an account's latest 3200 posts.
	maxPages = 32
)

// fieldNames are the two sets of names for a post's fields: those in X's guides, and those in its OpenAPI document
// 2.167 and its SDK 0.6.6 (both of August 2026). When last checked, the service accepted the old names; it rejects
// unknown names with status 400.
var fieldNames = []struct{ parameter, fields string }{
	{"tweet.fields", "created_at,text,entities,conversation_id,referenced_tweets,note_tweet,attachments"},
	{"post.fields", "created_at,text,entities,conversation_id,referenced_posts,note_post,attachments"},
}

// Lookup searches the account's timeline for the job's text, in posts created at or after job.SearchFrom.
//
// It skips posts whose parent is not the job's, and posts that belong to other jobs. It reports absence only if X
// returned the complete listing; otherwise it returns an error.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	var failure *platforms.Error
	for _, names := range fieldNames {
		s := search{job: &job, text: expectedFrom(&job.Content), media: job.FileIDs(validID), matches: listing.Matches{}}
		failure = p.search(ctx, &s, url.Values{names.parameter: {names.fields}})
		if failure == nil {
			return s.result()
		}
		if failure.Class != platforms.ClassPermanent && !errors.Is(failure, errIgnored) {
			break
		}
	}
	return platforms.LookupResult{}, failure
}

type search struct {
	job     *platforms.Job
	text    expectedText
	media   []string
	matches listing.Matches
	// unclear is set if a matching post may be a reply to the job's parent: X returned no references for it, but it
	// does not start a conversation.
	unclear bool
}

// search reads the account's timeline to its end. fields is the query for the posts' fields.
func (p *Platform) search(ctx context.Context, s *search, fields url.Values) *platforms.Error {
	cursor := ""
	for range maxPages {
		resp, failure := p.read(ctx, "list", timelinePath(s.job, fields, cursor), s.job.Account.Token)
		if failure != nil {
			return failure
		}
		page, failure := p.readPage(resp)
		if failure != nil {
			return failure
		}
		if slices.ContainsFunc(page.Data, func(l listedPost) bool { return l.CreatedAt.String() == "" }) {
			return p.fieldsIgnored()
		}
		for i := range page.Data {
			p.add(s, &page.Data[i])
		}
		cursor = page.Meta.Value.NextToken.String()
		if cursor == "" {
			return nil
		}
	}
	return p.API.TooManyPages()
}

// fieldsIgnored returns the failure for a page without the requested fields. A post cannot be recognized without its
// files, links or references, so the page does not prove its absence. The other field names are tried next, as if X had
// rejected these.
func (p *Platform) fieldsIgnored() *platforms.Error {
	return p.API.NoList().Because(errIgnored)
}

var errIgnored = errors.New("fields that were asked for are left out")

func (p *Platform) add(s *search, post *listedPost) {
	id, at := post.ID.String(), post.created()
	// An uploaded file belongs to only one post, so files identify a post better than its text. X also appends a
	// URL for the files to the text.
	fits := s.media == nil && s.text.matches(post) || s.media != nil && post.shows(s.media)
	switch to := s.job.Content.InReplyTo; {
	case !fits, listing.IsOld(s.job, at, time.Millisecond), listing.BelongsToOther(s.job, id):
	case post.repliedTo() == to:
		s.matches.Add(listing.Match{ID: id, URL: p.postURL(s.job.Account, id), At: at})
	case len(post.references()) == 0 && !post.startsConversation():
		s.unclear = true
	}
}

// result returns the matches. X omits the references of a post that has none. If a matching post has no references but
// does not start a conversation, X may be using another name for them, so the card's absence is not proven.
func (s *search) result() (platforms.LookupResult, error) {
	if len(s.matches) == 0 && s.unclear {
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown,
			"X lists a post with the text of this card, but does not show which post it replies to").Advise("look for the card manually")
	}
	return s.matches.Result(), nil
}

// timelinePath returns the path for one page of an account's posts. Replies are included: excluding them would also
// exclude the cards of a tree.
func timelinePath(job *platforms.Job, fields url.Values, cursor string) string {
	query := url.Values{
		"max_results": {strconv.Itoa(pageSize)},
		"exclude":     {"retweets"},
	}
	maps.Copy(query, fields)
	if since := idBefore(job.SearchFrom); since != "" {
		query.Set("since_id", since)
	}
	if cursor != "" {
		query.Set("pagination_token", cursor)
	}
	return "/2/users/" + url.PathEscape(job.Account.ID) + "/tweets?" + query.Encode()
}

type timelinePage struct {
	Data []listedPost                   `json:"data"`
	Meta jsondoc.Optional[timelineMeta] `json:"meta"`
	// Errors indicate that the page is incomplete.
	Errors []any `json:"errors"`
}

type timelineMeta struct {
	NextToken   jsondoc.Text `json:"next_token"`
	ResultCount jsondoc.Text `json:"result_count"`
}

// listedPost is a post in a timeline.
type listedPost struct {
	listedText

	ID        jsondoc.Text `json:"id"`
	CreatedAt jsondoc.Text `json:"created_at"`
	// ConversationID is the id of the first post of the conversation (docs.x.com, fundamentals/conversation-id).
	ConversationID jsondoc.Text `json:"conversation_id"`
	// Note holds a long post's full text. See fieldNames for the second name of this field and of References.
	Note           listedText  `json:"note_tweet"`
	NotePost       listedText  `json:"note_post"`
	References     []reference `json:"referenced_tweets"`
	PostReferences []reference `json:"referenced_posts"`
	Attachments    struct {
		MediaKeys []jsondoc.Text `json:"media_keys"`
	} `json:"attachments"`
}

type reference struct {
	Type jsondoc.Text `json:"type"`
	ID   jsondoc.Text `json:"id"`
}

// readPage parses a page. If a page is empty, X omits "data", and a valid page is recognized by its "meta".
func (p *Platform) readPage(resp *transport.Response) (timelinePage, *platforms.Error) {
	page, _ := jsondoc.Decode[timelinePage](resp.Body)
	if !page.Meta.Present && page.Data == nil || len(page.Errors) > 0 {
		return timelinePage{}, silentRefusal(resp, p.API.NoList())
	}
	odd := slices.ContainsFunc(page.Data, func(post listedPost) bool { return !validID(post.ID.String()) })
	if count := page.Meta.Value.ResultCount.String(); odd || count != "" && count != strconv.Itoa(len(page.Data)) {
		return timelinePage{}, p.API.NoList()
	}
	return page, nil
}

// startsConversation reports whether a post is the first in its conversation, and so is not a reply.
func (p *listedPost) startsConversation() bool {
	return p.ConversationID.String() != "" && p.ConversationID.String() == p.ID.String()
}

// shows reports whether a listed post has the files with these upload ids, in order.
func (p *listedPost) shows(media []string) bool {
	return slices.EqualFunc(p.Attachments.MediaKeys, media, func(key jsondoc.Text, id string) bool {
		// A media key consists of the media type's number and the id.
		_, named, _ := strings.Cut(key.String(), "_")
		return named == id
	})
}

func (p *listedPost) created() time.Time {
	if at, ok := snowflakeTime(p.ID.String()); ok {
		return at
	}
	return p.CreatedAt.Time()
}

// references returns the posts that a post replies to or quotes, under either name.
func (p *listedPost) references() []reference { return slices.Concat(p.References, p.PostReferences) }

// repliedTo returns the id of the post that a post replies to: empty for a post that is not a reply, and "?" for a
// reply without an id.
func (p *listedPost) repliedTo() string {
	for _, reference := range p.references() {
		if reference.Type == "replied_to" {
			return cmp.Or(reference.ID.String(), "?")
		}
	}
	return ""
}

const (
	// snowflakeEpoch is the epoch of the timestamps in X's ids, in Unix milliseconds.
	snowflakeEpoch = 1288834974657
	// snowflakeShift is the number of low bits of an id that are not part of the timestamp.
	snowflakeShift = 22
)

// snowflakeTime returns the creation time of the post with this id, to the millisecond, or false if the id is not a
// valid X id.
func snowflakeTime(id string) (time.Time, bool) {
	n, err := strconv.ParseUint(id, 10, 63)
	if err != nil || n>>snowflakeShift == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(n>>snowflakeShift) + snowflakeEpoch).UTC(), true
}

// idBefore returns the greatest id older than every post created at t or later, for the parameter since_id. It returns
// "" if t is out of range.
func idBefore(t time.Time) string {
	ms := t.UnixMilli() - snowflakeEpoch
	if ms <= 0 || ms >= 1<<(63-snowflakeShift) {
		return ""
	}
	return strconv.FormatInt(ms<<snowflakeShift-1, 10)
}
