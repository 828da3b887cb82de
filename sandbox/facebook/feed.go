// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// maxMessage is the maximum message length, in characters. Facebook does not document it; clients have used the number for years.
const maxMessage = 63_206

// feed handles POST /{id}/feed.
func (p *Platform) feed(c *graph.Call) (any, *graph.Error) {
	page, bad := c.Owner(scopePost, scopeRead)
	if bad != nil {
		return nil, bad
	}
	draft, fields, bad := p.readPost(c, page)
	if bad != nil {
		return nil, bad
	}
	if fields == nil {
		fields = []graph.Field{{Name: "id"}}
	}
	// Check the fields before creating anything: the post is rejected if a field is unknown.
	if _, bad := p.post(c.Request.Request, page, state.Post{}).Select(fields); bad != nil {
		return nil, bad
	}
	node, bad := p.createPost(c, page, draft)
	if bad != nil {
		return nil, bad
	}
	body, bad := node.Select(fields)
	if bad != nil {
		return nil, bad
	}
	return body, nil
}

// createPost creates a post, or a draft if it is unpublished.
func (p *Platform) createPost(c *graph.Call, page state.Account, draft state.Draft) (graph.Node, *graph.Error) {
	if !c.Params.Bool("published", true) {
		return p.createDraft(c, page, draft)
	}
	post, err := p.Store.Publish(page.Key, draft)
	if err != nil {
		return graph.Node{}, refusal(c, err)
	}
	return p.post(c.Request.Request, page, post), nil
}

// newID returns a generator for a Page's post IDs.
func newID(page state.Account) func(state.Stamp) string {
	return func(at state.Stamp) string { return page.ID + "_" + graph.NewID(at) }
}

// readPost reads a post from a request. It returns an error if Facebook would reject the post.
func (p *Platform) readPost(c *graph.Call, page state.Account) (state.Draft, []graph.Field, *graph.Error) {
	q := c.Params
	draft := state.Draft{Text: q.Text("message"), NewID: newID(page)}
	// Unpublished posts other than drafts, such as advertisements, are not simulated.
	if kind := q.OneOf("unpublished_content_type", unpublished...); q.Bool("published", true) != (kind == "") || kind != "" && kind != "DRAFT" {
		q.Rejectf("Param published is simulated as true, and as false with the unpublished_content_type DRAFT.")
	}
	q.Unsimulated("scheduled_publish_time", "backdated_time")
	link := readLink(q)
	photos := readAttached(q)
	fields := q.Fields()
	if bad := q.Validate(); bad != nil {
		return draft, nil, bad
	}
	if bad := p.attach(&draft, page, photos); bad != nil {
		return draft, nil, bad
	}
	draft.Repeats = repeats(draft)
	if link != "" && len(photos) == 0 {
		draft.Detail, _ = json.Marshal(draftDetail{Link: link}) // encoding an address cannot fail
	}
	return draft, fields, checkPost(draft)
}

// unpublished are the kinds of unpublished posts in Meta's SDKs (Page, CreateFeed).
var unpublished = []string{"ADS_POST", "DRAFT", "INLINE_CREATED", "PUBLISHED", "REVIEWABLE_BRANDED_CONTENT", "SCHEDULED", "SCHEDULED_RECURRING"}

// readLink reads a link card's address.
func readLink(q *graph.Params) string {
	link := q.Text("link")
	if address, err := url.Parse(link); link != "" && (err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https") {
		q.Reject(graph.Refusal(1500, "The url you supplied is invalid"))
	}
	return link
}

// repeats returns a function that reports whether a draft repeats the newest post.
func repeats(draft state.Draft) func(state.Post) bool {
	return func(newest state.Post) bool {
		return strings.TrimSpace(newest.Text) == strings.TrimSpace(draft.Text) && slices.Equal(newest.Media, draft.Media)
	}
}

// checkPost enforces a post's limits.
func checkPost(draft state.Draft) *graph.Error {
	if strings.TrimSpace(draft.Text) == "" && len(draft.Media) == 0 {
		return graph.Refusal(100, "(#100) Missing message or attachment.").Because(1349125, "Missing message or attachment",
			"A post needs a message or media.")
	}
	if utf8.RuneCountInString(draft.Text) > maxMessage {
		return graph.BadParam("Param message must be at most %d characters long.", maxMessage)
	}
	return nil
}

// refusal maps a store error to Facebook's response.
func refusal(c *graph.Call, err error) *graph.Error {
	if _, twice := errors.AsType[*state.DuplicateError](err); twice {
		return graph.Refusal(506, "(#506) Duplicate status message").Because(1455006, "Duplicate Status Update",
			"This status update is identical to the last one you posted. Try posting something different.")
	}
	if _, full := errors.AsType[*state.QuotaError](err); full {
		abuse := graph.Abuse()
		return &abuse
	}
	if _, used := errors.AsType[*state.PublishedError](err); used {
		return alreadyPosted() // by a concurrent call
	}
	return c.InternalError("keep a post", err)
}
