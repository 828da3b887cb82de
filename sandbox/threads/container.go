// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"encoding/json"
	"time"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// The kinds of containers.
const (
	kindText     = "TEXT"
	kindImage    = "IMAGE"
	kindVideo    = "VIDEO"
	kindCarousel = "CAROUSEL"
)

// processing is the default processing time of a container without a video. Threads does not document it; clients that
// poll find the container ready at their first poll.
const processing = 200 * time.Millisecond

// detail is the stored data of a container or post, apart from its text.
type detail struct {
	// Kind is empty for a text post.
	Kind string `json:"kind,omitempty"`
	// Item is true if the container is for a carousel.
	Item bool `json:"item,omitempty"`
	// Children are the items of a carousel, one for each of its files.
	Children []child `json:"children,omitempty"`
}

// create handles POST /{id}/threads.
func (p *Platform) create(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic, scopePublish)
	if bad != nil {
		return nil, bad
	}
	kind, draft, bad := p.readContainer(c, account)
	if bad != nil {
		return nil, bad
	}
	duration := processing
	if kind == kindVideo {
		duration = graph.VideoProcessing
	}
	container, err := p.Store.CreateContainer(account.Key, draft, duration, graph.NewID)
	if err != nil {
		return nil, c.InternalError("keep a container", err)
	}
	if container.Source != "" {
		p.fetch(container)
	}
	return map[string]string{"id": container.ID}, nil
}

// readContainer reads a container from a request. It returns an error if Threads would reject it.
func (p *Platform) readContainer(c *graph.Call, account state.Account) (string, state.Container, *graph.Error) {
	q := c.Params
	q.Required("media_type")
	kind := q.OneOf("media_type", kindText, kindImage, kindVideo, kindCarousel)
	kept := detail{Item: q.Bool("is_carousel_item", false)}
	if kind != kindText {
		kept.Kind = kind
	}
	out := state.Container{AccountID: account.ID, Text: q.Text("text"), InReplyTo: q.Text("reply_to_id"), AltText: q.AltText("alt_text")}
	checkKind(q, kind)
	q.Unsimulated("auto_publish_text")
	if bad := q.Validate(); bad != nil {
		return kind, out, bad
	}
	if bad := checkText(kind, out.Text); bad != nil {
		return kind, out, bad
	}
	if bad := p.checkReply(c, &out); bad != nil {
		return kind, out, bad
	}
	if bad := p.addMedia(c, kind, &out, &kept); bad != nil {
		return kind, out, bad
	}
	content, err := json.Marshal(kept)
	if err != nil {
		return kind, out, c.InternalError("encode a container", err)
	}
	out.Detail = content
	return kind, out, nil
}

// checkReply finds the post being replied to, and its chain.
func (p *Platform) checkReply(c *graph.Call, out *state.Container) *graph.Error {
	if out.InReplyTo == "" {
		return nil
	}
	if _, bad := c.Account(scopeManageReplies); bad != nil {
		return bad
	}
	parent, ok := p.Store.Post(Name, out.InReplyTo)
	if !ok {
		return graph.BadParam("Param reply_to_id must be the id of a published post.")
	}
	out.Root = parent.Root
	return nil
}

// detailOf decodes the detail of a container or post.
func detailOf(content json.RawMessage) detail {
	var out detail
	if len(content) > 0 {
		// The content was encoded by this package. If decoding fails, the post is only shown incompletely.
		_ = json.Unmarshal(content, &out)
	}
	return out
}

// status handles GET /{id} for a container.
func (p *Platform) status(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(scopeBasic)
	if bad != nil {
		return nil, bad
	}
	container, ok := p.Container(account, c.PathValue("id"))
	if !ok {
		return nil, graph.NoObject("get", c.PathValue("id"))
	}
	node := graph.Node{
		Type: "ThreadsMediaContainer", Values: map[string]any{"id": container.ID, "status": p.StatusOf(container, false)},
		Known: []string{"id", "status", "error_message"}, Default: []string{"id"},
	}
	if node.Values["status"] == graph.Failed {
		node.Values["error_message"] = container.Failure
	}
	return c.Show(node)
}

// publish handles POST /{id}/threads_publish.
func (p *Platform) publish(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic, scopePublish)
	if bad != nil {
		return nil, bad
	}
	id := c.Params.Required("creation_id")
	if bad := c.Params.Validate(); bad != nil {
		return nil, bad
	}
	from, ok := p.Container(account, id)
	// To the platform, a container that is not ready, belongs to another account or is already published does not
	// exist.
	if !ok || p.StatusOf(from, false) != graph.Finished {
		return nil, noContainer(id)
	}
	if detailOf(from.Detail).Item {
		return nil, graph.BadParam("Param creation_id must not be the id of a carousel item.")
	}
	return c.PublishContainer(account, state.Draft{
		Text: from.Text, Media: from.Media, InReplyTo: from.InReplyTo, Root: from.Root, Detail: from.Detail, Container: id,
		Free: from.InReplyTo != "",
	}, noContainer(id))
}

// noContainer returns the error for an id that does not name a publishable container.
func noContainer(id string) *graph.Error {
	return graph.Refusal(24, "The requested resource does not exist").Because(4279009, "Media Not Found",
		"The media with id "+id+" cannot be found.")
}
