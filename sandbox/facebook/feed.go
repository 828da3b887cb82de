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

// maxMessage is how many characters a message may have. Facebook does not document it; clients have known the number for
// years.
const maxMessage = 63_206

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
	if fields == nil {
		fields = []graph.Field{{Name: "id"}}
	}
	// Asked before anything is made: a field that does not exist refuses the post.
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

// createPost makes a post of a request, or a draft if it is not to be visible.
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

// newID makes the ids of a Page's posts.
func newID(page state.Account) func(state.Stamp) string {
	return func(at state.Stamp) string { return page.ID + "_" + graph.NewID(at) }
}

// readPost turns a request into a post, or says why Facebook would refuse it.
func (p *Platform) readPost(c *graph.Call, page state.Account) (state.Draft, []graph.Field, *graph.Error) {
	q := c.Params
	draft := state.Draft{Text: q.Text("message"), NewID: newID(page)}
	// What is neither visible nor a draft, such as a post for an advertisement, is not simulated.
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
		draft.Detail, _ = json.Marshal(draftDetail{Link: link}) // an address always encodes
	}
	return draft, fields, checkPost(draft)
}

// unpublished are the kinds of posts that are not visible, as Meta's SDKs list them (Page, CreateFeed).
var unpublished = []string{"ADS_POST", "DRAFT", "INLINE_CREATED", "PUBLISHED", "REVIEWABLE_BRANDED_CONTENT", "SCHEDULED", "SCHEDULED_RECURRING"}

// readLink reads the address to which a post leads by a card.
func readLink(q *graph.Params) string {
	link := q.Text("link")
	if address, err := url.Parse(link); link != "" && (err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https") {
		q.Reject(graph.Refusal(1500, "The url you supplied is invalid"))
	}
	return link
}

// repeats says of the newest post whether a draft is the same again.
func repeats(draft state.Draft) func(state.Post) bool {
	return func(newest state.Post) bool {
		return strings.TrimSpace(newest.Text) == strings.TrimSpace(draft.Text) && slices.Equal(newest.Media, draft.Media)
	}
}

// checkPost applies the limits of a post.
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

// refusal words why the store did not take a post.
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
		return alreadyPosted() // by a call at the same time
	}
	return c.Broken("keep a post", err)
}
