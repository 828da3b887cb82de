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
	// pageSize is the greatest max_results of GET /2/users/{id}/tweets.
	pageSize = 100

	// maxPages bounds one look-up: X lists no more than an account's latest
	// 3200 posts.
	maxPages = 32
)

// fieldNames are the names under which X gives the fields of a post: those of its
// guides, and those of its OpenAPI document 2.167 and of its SDK 0.6.6 (both of
// August 2026). The service took the old ones last; a name that it does not know
// it refuses with status 400.
var fieldNames = []struct{ parameter, fields string }{
	{"tweet.fields", "created_at,text,entities,conversation_id,referenced_tweets,note_tweet,attachments"},
	{"post.fields", "created_at,text,entities,conversation_id,referenced_posts,note_post,attachments"},
}

// Lookup searches the account's timeline for the job's text, among what was
// created at job.SearchFrom or later.
//
// What hangs from another post than the job's, and what belongs to other jobs,
// is passed over. Absence is
// only reported if X listed everything; otherwise it is an error.
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

// search looks for the post of a job in a timeline.
type search struct {
	job     *platforms.Job
	text    expectedText
	media   []string
	matches listing.Matches
	// unclear says that a post fits of which X does not tell whether it hangs from
	// another one.
	unclear bool
}

// search reads the account's timeline to its end. fields asks for the fields of
// posts.
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
	return p.api.TooManyPages()
}

// fieldsIgnored is the failure of a page that does not have what was asked for: a
// post without its files, links or references is not known again, and is no proof of
// absence. The other names are tried then, as where X refuses these.
func (p *Platform) fieldsIgnored() *platforms.Error {
	return p.api.NoList().Because(errIgnored)
}

var errIgnored = errors.New("fields that were asked for are left out")

// add looks at a listed post.
func (p *Platform) add(s *search, post *listedPost) {
	id, at := post.ID.String(), post.created()
	// What was uploaded for one job is shown by no other post, so that files
	// say more than the text, which X gives back with an address for them
	// behind it.
	fits := s.media == nil && s.text.matches(post) || s.media != nil && post.shows(s.media)
	switch to := s.job.Content.InReplyTo; {
	case !fits, listing.IsOld(s.job, at, time.Millisecond), listing.BelongsToOther(s.job, id):
	case post.repliedTo() == to:
		s.matches.Add(listing.Match{ID: id, URL: p.postURL(s.job.Account, id), At: at})
	case len(post.references()) == 0 && !post.startsConversation():
		s.unclear = true
	}
}

// result tells what was found. X leaves the references out of a post that has
// none. Where a post that fits has none and does not begin a conversation, X may
// give them under another name, so that the card's absence is not proven.
func (s *search) result() (platforms.LookupResult, error) {
	if len(s.matches) == 0 && s.unclear {
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown,
			"X lists a post with the words of this card and does not tell which post it hangs from").Advise("look for the card by hand")
	}
	return s.matches.Result(), nil
}

// timelinePath asks for one page of an account's own posts. Replies stay in,
// because leaving them out would leave out the cards of a tree as well.
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

// timelinePage is one page of a timeline.
type timelinePage struct {
	Data []listedPost                   `json:"data"`
	Meta jsondoc.Optional[timelineMeta] `json:"meta"`
	// Errors say that something is missing.
	Errors []any `json:"errors"`
}

type timelineMeta struct {
	NextToken   jsondoc.Text `json:"next_token"`
	ResultCount jsondoc.Text `json:"result_count"`
}

// listedPost is a post of a timeline.
type listedPost struct {
	listedText

	ID        jsondoc.Text `json:"id"`
	CreatedAt jsondoc.Text `json:"created_at"`
	// ConversationID is the id of the post with which its conversation began
	// (docs.x.com, fundamentals/conversation-id).
	ConversationID jsondoc.Text `json:"conversation_id"`
	// Note holds the full text of a long post; see fieldNames for the second
	// name, and for that of References.
	Note           listedText  `json:"note_tweet"`
	NotePost       listedText  `json:"note_post"`
	References     []reference `json:"referenced_tweets"`
	PostReferences []reference `json:"referenced_posts"`
	Attachments    struct {
		MediaKeys []jsondoc.Text `json:"media_keys"`
	} `json:"attachments"`
}

// reference is a post that a post hangs from, or quotes.
type reference struct {
	Type jsondoc.Text `json:"type"`
	ID   jsondoc.Text `json:"id"`
}

// readPage reads a page. X leaves out "data" when a page is empty: what proves
// an answer to be a page is then its "meta".
func (p *Platform) readPage(resp *transport.Response) (timelinePage, *platforms.Error) {
	page, _ := jsondoc.Decode[timelinePage](resp.Body)
	if !page.Meta.Present && page.Data == nil || len(page.Errors) > 0 {
		return timelinePage{}, silentRefusal(resp, p.api.NoList())
	}
	odd := slices.ContainsFunc(page.Data, func(post listedPost) bool { return !validID(post.ID.String()) })
	if count := page.Meta.Value.ResultCount.String(); odd || count != "" && count != strconv.Itoa(len(page.Data)) {
		return timelinePage{}, p.api.NoList()
	}
	return page, nil
}

// startsConversation reports whether X says that a post begins a conversation, and so
// hangs from none.
func (p *listedPost) startsConversation() bool {
	return p.ConversationID.String() != "" && p.ConversationID.String() == p.ID.String()
}

// shows reports whether a listed post shows the files that were uploaded under
// these ids, in their order.
func (p *listedPost) shows(media []string) bool {
	return slices.EqualFunc(p.Attachments.MediaKeys, media, func(key jsondoc.Text, id string) bool {
		// A key is the number of the kind of media, and the id.
		_, named, _ := strings.Cut(key.String(), "_")
		return named == id
	})
}

// created is when a post was created, by its id or else by its own word.
func (p *listedPost) created() time.Time {
	if at, ok := snowflakeTime(p.ID.String()); ok {
		return at
	}
	return p.CreatedAt.Time()
}

// references are the posts that a post hangs from or quotes, by either name.
func (p *listedPost) references() []reference { return slices.Concat(p.References, p.PostReferences) }

// repliedTo is the post that a post hangs from; empty for one that stands alone.
// One that hangs from what X does not name hangs from "?".
func (p *listedPost) repliedTo() string {
	for _, reference := range p.references() {
		if reference.Type == "replied_to" {
			return cmp.Or(reference.ID.String(), "?")
		}
	}
	return ""
}

const (
	// snowflakeEpoch is the origin of the times in X's ids, in milliseconds
	// of Unix time.
	snowflakeEpoch = 1288834974657
	// snowflakeShift is how many low bits of an id are not time.
	snowflakeShift = 22
)

// snowflakeTime returns when the post with this id was created, to the
// millisecond; false if the id is not one of X's.
func snowflakeTime(id string) (time.Time, bool) {
	n, err := strconv.ParseUint(id, 10, 63)
	if err != nil || n>>snowflakeShift == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(n>>snowflakeShift) + snowflakeEpoch).UTC(), true
}

// idBefore returns the greatest id that is older than every post created at t
// or later, in the form of the parameter since_id; "" if no id can say it.
func idBefore(t time.Time) string {
	ms := t.UnixMilli() - snowflakeEpoch
	if ms <= 0 || ms >= 1<<(63-snowflakeShift) {
		return ""
	}
	return strconv.FormatInt(ms<<snowflakeShift-1, 10)
}
