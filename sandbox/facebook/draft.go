// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// draftLife is the lifetime of a draft. Clients mention about 30 days (zernio-dev, "FacebookPlatformData").
const draftLife = 30 * 24 * time.Hour

// draftDetail distinguishes a draft from photos awaiting their post.
type draftDetail struct {
	// Photos are the ids of the post's photos.
	Photos []string `json:"photos,omitempty"`
	Link   string   `json:"link,omitempty"`
	Draft  bool     `json:"draft,omitempty"`
}

func detailOf(content json.RawMessage) (d draftDetail) {
	_ = json.Unmarshal(content, &d) // a photo has no detail
	return d
}

// feedOrDraft returns the handler of POST /{id}/feed. Depending on the parameters, it publishes a post or creates an
// invisible draft.
func (p *Platform) feedOrDraft() http.HandlerFunc {
	publish, create := p.Route(faults.Publish, p.feed), p.Route(faults.Create, p.feed)
	return p.byParams(publish, create, func(q *graph.Params) bool { return !q.Bool("published", true) })
}

// change returns the handler of POST /{id} for a post, which publishes a draft or deletes a post.
func (p *Platform) change() http.HandlerFunc {
	publish, remove := p.Route(faults.Publish, p.publishDraft), p.Route(graph.OpDelete, graph.ByMethod(p.remove))
	return p.byParams(remove, publish, func(q *graph.Params) bool { return q.Has("is_published") })
}

// byParams selects one of two handlers by the parameters.
func (p *Platform) byParams(usual, other http.Handler, isOther func(*graph.Params) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r, params, bad := p.ReadForm(r, "", 0)
		if bad == nil && isOther(params) {
			other.ServeHTTP(w, r)
			return
		}
		usual.ServeHTTP(w, r)
	}
}

// createDraft stores an invisible post.
func (p *Platform) createDraft(c *graph.Call, page state.Account, draft state.Draft) (graph.Node, *graph.Error) {
	detail := detailOf(draft.Detail)
	detail.Draft, detail.Photos = true, draft.Parts
	content, err := json.Marshal(detail)
	if err != nil {
		return graph.Node{}, c.InternalError("encode a draft", err)
	}
	kept, err := p.Store.CreateContainer(page.Key, state.Container{Text: draft.Text, Media: draft.Media, Detail: content}, 0, draft.NewID)
	if err != nil {
		return graph.Node{}, c.InternalError("keep a draft", err)
	}
	return p.draftNode(c.Request.Request, page, kept), nil
}

// draftOf returns a page's unpublished draft. A draft expires after draftLife.
func (p *Platform) draftOf(page state.Account, id string) (state.Container, bool) {
	draft, ok := p.Container(page, id)
	return draft, ok && detailOf(draft.Detail).Draft && draft.PostID == "" && p.Clock.Now().Before(draft.CreatedAt().Add(draftLife))
}

// draftNode renders a draft as an unpublished post.
func (p *Platform) draftNode(r *http.Request, page state.Account, draft state.Container) graph.Node {
	detail := detailOf(draft.Detail)
	node := p.post(r, page, state.Post{
		Key: draft.Key, AccountID: page.ID, Stamp: draft.Stamp, Text: draft.Text, Media: draft.Media, Parts: detail.Photos, Detail: draft.Detail,
	})
	node.Values["is_published"] = false
	return node
}

// publishDraft handles POST /{id} with is_published. The post becomes visible under its draft's ID. For an already
// published post it succeeds with the same response. This is our interpretation: no reference documents it.
func (p *Platform) publishDraft(c *graph.Call) (any, *graph.Error) {
	page, bad := c.Account(scopePost)
	if bad != nil {
		return nil, bad
	}
	if !c.Params.Bool("is_published", false) {
		c.Params.Rejectf("Param is_published must be true: a post cannot be taken back.")
	}
	if bad := c.Params.Validate(); bad != nil {
		return nil, bad
	}
	id := c.PathValue("id")
	success := map[string]bool{"success": true}
	if post, ok := p.Store.Post(Name, id); ok && post.AccountID == page.ID {
		return success, nil
	}
	kept, ok := p.draftOf(page, id)
	if !ok {
		return nil, graph.NoObject("post", id)
	}
	draft := state.Draft{
		Text: kept.Text, Media: kept.Media, Container: id, Parts: detailOf(kept.Detail).Photos, Detail: kept.Detail,
		NewID: func(state.Stamp) string { return id },
	}
	draft.Repeats = repeats(draft)
	if _, err := p.Store.Publish(page.Key, draft); err != nil {
		return nil, refusal(c, err)
	}
	return success, nil
}
