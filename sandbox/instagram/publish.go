// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"encoding/json"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

func (l *login) statusOf(c state.Container) string { return l.StatusOf(c, detailOf(c.Detail).Awaited) }

// statusTexts are the descriptions of the states. A failure's description ends with its subcode.
var statusTexts = map[string]string{
	graph.InProgress: "In Progress: Media is still being processed.",
	graph.Finished:   "Finished: Media has been uploaded and it is ready to be published.",
	graph.Published:  "Published: Media has been published.",
	graph.Expired:    "Expired: Media was not published within 24 hours.",
	graph.Failed:     "Error: Media upload has failed with error code ",
}

// status handles GET /{id} for a container.
func (l *login) status(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(l.read...)
	if bad != nil {
		return nil, bad
	}
	container, ok := l.Container(account, c.PathValue("id"))
	if !ok {
		return nil, graph.NoObject("get", c.PathValue("id"))
	}
	code := l.statusOf(container)
	text := statusTexts[code]
	if code == graph.Failed {
		text += container.Failure
	}
	return c.Show(graph.Node{
		Type: "IGMediaContainer", Values: map[string]any{"id": container.ID, "status_code": code, "status": text},
		Known: []string{"id", "status", "status_code"}, Default: []string{"id"},
	})
}

// publish handles POST /{id}/media_publish.
func (l *login) publish(c *graph.Call) (any, *graph.Error) {
	account, bad := l.owner(c, l.write)
	if bad != nil {
		return nil, bad
	}
	id := c.Params.Required("creation_id")
	if bad := c.Params.Validate(); bad != nil {
		return nil, bad
	}
	from, ok := l.Container(account, id)
	kept := detailOf(from.Detail)
	switch status := l.statusOf(from); {
	case !ok:
		return nil, mediaNotFound(id)
	case status == graph.Published:
		return nil, creationNotFound(id)
	case status == graph.Expired:
		return nil, mediaExpired(id)
	case status != graph.Finished:
		return nil, notReady(id)
	case kept.Item:
		return nil, graph.BadParam("Container %s is an item of a carousel and cannot be published by itself.", id)
	}
	draft := state.Draft{Text: from.Text, Media: from.Media, Container: id}
	for _, child := range kept.Children {
		item, _ := l.Store.Container(Name, child)
		kept.Parts = append(kept.Parts, detailOf(item.Detail))
		draft.Media = append(draft.Media, item.Media...)
	}
	content, err := json.Marshal(kept)
	if err != nil {
		return nil, c.InternalError("encode a post", err)
	}
	draft.Detail = content
	return c.PublishContainer(account, draft, creationNotFound(id))
}

// postQuota is an account's documented 24-hour quota. The platform's pages disagree; this is the number in its reference.
const postQuota = 50

// limit handles GET /{id}/content_publishing_limit.
func (l *login) limit(c *graph.Call) (any, *graph.Error) {
	account, bad := l.owner(c, l.write)
	if bad != nil {
		return nil, bad
	}
	return c.Quota("IGContentPublishingLimit", account, postQuota)
}
