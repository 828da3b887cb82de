// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// maxMessage is how many characters a message may have. Facebook does not document it; clients have known the number for
// years.
const maxMessage = 63_206

// notSimulated are the documented parameters of a post or photo that would need more than its text, link and photos.
var notSimulated = []string{
	"scheduled_publish_time", "targeting", "feed_targeting", "place", "tags", "backdated_time", "text_format_preset_id",
	"provenance_info",
}

// refuseMissing reads what is not simulated; its result refuses it.
func refuseMissing(q *graph.Params) *graph.Error {
	missing := ""
	for _, name := range notSimulated {
		if q.Text(name) != "" {
			missing = name
		}
	}
	if q.Text("unpublished_content_type") == "SCHEDULED" {
		missing = "unpublished_content_type"
	}
	if missing == "" {
		return nil
	}
	return graph.BadParam("Param %s is not available here.", missing).Because(0, "Not simulated",
		"The sandbox simulates posts of text, links and photos that are published at once, or not at all.")
}

// feed is POST /{id}/feed.
func (p *Platform) feed(c *graph.Call) (any, *graph.Error) {
	page, bad := c.Owner(scopePost, scopeRead)
	if bad != nil {
		return nil, bad
	}
	draft, fields, bad := p.readPost(c, page)
	if bad != nil {
		return nil, bad
	}
	if fields != nil {
		// Asked before anything is made: a field that does not exist refuses the post.
		if _, bad := p.post(c.Request.Request, page, state.Post{}).Select(fields); bad != nil {
			return nil, bad
		}
	}
	post, err := p.Store.Publish(page.Key, draft)
	if err != nil {
		return nil, refusal(c, err)
	}
	if fields == nil {
		return map[string]string{"id": post.ID}, nil
	}
	return result(p.post(c.Request.Request, page, post).Select(fields))
}

// newID makes the ids of a Page's posts.
func newID(page state.Account) func(state.Stamp) string {
	return func(at state.Stamp) string { return page.ID + "_" + graph.NewID(at) }
}

// readPost turns a request into a post, or says why Facebook would refuse it.
func (p *Platform) readPost(c *graph.Call, page state.Account) (state.Draft, []graph.Field, *graph.Error) {
	q := c.Params
	published := q.Bool("published", true)
	unpublished := q.OneOf("unpublished_content_type", "SCHEDULED", "DRAFT", "ADS_POST", "INLINE_CREATED", "REVIEWABLE_BRANDED_CONTENT")
	draft := state.Draft{
		Text: q.Text("message"), Link: q.Text("link"), Inbox: !published, Free: !published, NewID: newID(page),
	}
	photos, unreadable := readAttached(q)
	fields, missing := q.Fields(), refuseMissing(q)
	if bad := q.End(); bad != nil {
		return draft, nil, bad
	}
	switch {
	case missing != nil:
		return draft, nil, missing
	case unreadable != nil:
		return draft, nil, unreadable
	case published && unpublished != "":
		return draft, nil, graph.BadParam("Param unpublished_content_type needs published=false.")
	case len(photos) > 0 && draft.Link != "":
		return draft, nil, graph.BadParam("Param link does not go with attached_media.")
	}
	if bad := p.attach(&draft, page, photos); bad != nil {
		return draft, nil, bad
	}
	if bad := checkPost(draft); bad != nil {
		return draft, nil, bad
	}
	if published {
		draft.Repeats = repeats(draft)
	}
	return draft, fields, nil
}

// repeats says of the newest post whether a draft is the same again.
func repeats(draft state.Draft) func(state.Post) bool {
	return func(newest state.Post) bool {
		return strings.TrimSpace(newest.Text) == strings.TrimSpace(draft.Text) && newest.Link == draft.Link &&
			slices.Equal(newest.Media, draft.Media)
	}
}

// checkPost applies the limits of a post.
func checkPost(draft state.Draft) *graph.Error {
	if strings.TrimSpace(draft.Text) == "" && draft.Link == "" && len(draft.Media) == 0 {
		return graph.Refusal(100, "(#100) Missing message or attachment.").Because(1349125, "Missing message or attachment",
			"A post needs a message, a link or media.")
	}
	if utf8.RuneCountInString(draft.Text) > maxMessage {
		return graph.BadParam("Param message must be at most %d characters long.", maxMessage)
	}
	if draft.Link == "" {
		return nil
	}
	address, err := url.Parse(draft.Link)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return graph.Refusal(1500, "The url you supplied is invalid").Because(1609005, "Invalid link",
			"The link must be an absolute http or https address.")
	}
	return nil
}

// refusal words why the store did not take a post.
func refusal(c *graph.Call, err error) *graph.Error {
	if _, twice := errors.AsType[*state.DuplicateError](err); twice {
		return graph.Refusal(506, "(#506) Duplicate status message").Because(1455006, "Duplicate Status Update",
			"This status update is identical to the last one you posted. Try posting something different.")
	}
	if _, full := errors.AsType[*state.QuotaError](err); full {
		return graph.Refusal(368, "The action attempted has been deemed abusive or is otherwise disallowed").Because(1390008,
			"You can't use this feature right now", "We limit how often you can post in a given amount of time. Try again later.")
	}
	if _, used := errors.AsType[*state.PublishedError](err); used {
		return alreadyPosted() // by a call at the same time
	}
	return c.Broken("keep a post", err)
}
