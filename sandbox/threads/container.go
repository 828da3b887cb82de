// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"encoding/json"
	"net/http"
	"slices"
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

const (
	// processing is how long a container takes to be ready, unless the control API says otherwise. Threads does not say
	// how long it is; clients that poll see less than their first interval for what is not a video.
	processing      = 200 * time.Millisecond
	videoProcessing = 2 * time.Second
	// containerLife is after how long a container that was not published expires.
	containerLife = 24 * time.Hour
)

// detail are the options of a container or post that are kept beside its text, for reading back.
type detail struct {
	// Kind is empty for a text.
	Kind         string          `json:"kind,omitempty"`
	ReplyControl string          `json:"reply_control,omitempty"`
	Topic        string          `json:"topic,omitempty"`
	Quote        string          `json:"quote,omitempty"`
	Ghost        bool            `json:"ghost,omitempty"`
	Approvals    bool            `json:"approvals,omitempty"`
	Alt          string          `json:"alt,omitempty"`
	Spoiler      bool            `json:"spoiler,omitempty"`
	Extras       json.RawMessage `json:"extras,omitempty"`
	// Item says that the container is to go into a carousel.
	Item bool `json:"item,omitempty"`
	// Children are what a carousel was made of, one for each of its files.
	Children []child `json:"children,omitempty"`
}

// create is POST /{id}/threads.
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
		duration = videoProcessing
	}
	container, err := p.Store.CreateContainer(account.Key, draft, duration, graph.NewID)
	if err != nil {
		return nil, c.Broken("keep a container", err)
	}
	if container.Source != "" {
		p.fetch(container)
	}
	if c.Params.Bool("auto_publish_text", false) {
		return p.publishContainer(c, account, container)
	}
	return map[string]string{"id": container.ID}, nil
}

// readContainer turns a request into a container, or says why Threads would refuse it.
func (p *Platform) readContainer(c *graph.Call, account state.Account) (string, state.Container, *graph.Error) {
	q := c.Params
	q.Required("media_type")
	kind := q.OneOf("media_type", kindText, kindImage, kindVideo, kindCarousel)
	kept := detail{
		ReplyControl: q.OneOf("reply_control", "everyone", "accounts_you_follow", "mentioned_only", "parent_post_author_only", "followers_only"),
		Topic:        q.Text("topic_tag"), Quote: q.Text("quote_post_id"), Ghost: q.Bool("is_ghost_post", false),
		Approvals: q.Bool("enable_reply_approvals", false), Extras: extras(q), Alt: q.Text("alt_text"),
		Item: q.Bool("is_carousel_item", false), Spoiler: q.Bool("is_spoiler_media", false),
	}
	if kind != kindText {
		kept.Kind = kind
	}
	out := state.Container{
		AccountID: account.ID, Text: q.Text("text"), Link: q.Text("link_attachment"), InReplyTo: q.Text("reply_to_id"),
	}
	q.Bool("auto_publish_text", false)
	q.Text("location_id")
	q.Text("allowlisted_country_codes")
	misplaced := checkKind(q, kind)
	if bad := q.End(); bad != nil {
		return kind, out, bad
	}
	if misplaced != nil {
		return kind, out, misplaced
	}
	if bad := checkText(kind, out.Text, out.Link); bad != nil {
		return kind, out, bad
	}
	if bad := checkTopic(q.Has("topic_tag"), &kept, out.Text); bad != nil {
		return kind, out, bad
	}
	if bad := p.checkReferences(c, &out, kept, account); bad != nil {
		return kind, out, bad
	}
	if bad := p.addMedia(c, kind, &out, &kept); bad != nil {
		return kind, out, bad
	}
	content, err := json.Marshal(kept)
	if err != nil {
		return kind, out, c.Broken("encode a container", err)
	}
	out.Detail = content
	return kind, out, nil
}

// extras are the optional parts of a post that are kept as they came.
func extras(q *graph.Params) json.RawMessage {
	kept := map[string]json.RawMessage{}
	for _, name := range []string{"poll_attachment", "gif_attachment", "text_attachment", "text_entities"} {
		if value := q.JSON(name); value != nil {
			kept[name] = value
		}
	}
	for _, name := range []string{"crossreshare_to_ig", "crossreshare_to_ig_dark_mode"} {
		if q.Bool(name, false) {
			kept[name] = json.RawMessage("true")
		}
	}
	if len(kept) == 0 {
		return nil
	}
	content, err := json.Marshal(kept)
	if err != nil {
		return nil // what JSON gave, JSON takes
	}
	return content
}

// checkReferences looks at what a post points to, and at what needs more than the scopes of a publisher.
func (p *Platform) checkReferences(c *graph.Call, out *state.Container, kept detail, author state.Account) *graph.Error {
	switch {
	case c.Params.Text("allowlisted_country_codes") != "":
		return graph.BadParam("THREADS_API__FEATURE_NOT_AVAILABLE: geo-gating is not enabled for this profile.")
	case c.Params.Text("location_id") != "":
		_, bad := c.Account("threads_location_tagging")
		return bad
	}
	if kept.Quote != "" {
		if _, ok := p.Store.Post(Name, kept.Quote); !ok {
			return graph.BadParam("Param quote_post_id must be the id of a published post.")
		}
	}
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
	// Nobody follows or is mentioned here: what is not open to everyone is open to its author only.
	if parent.AccountID != author.ID && !slices.Contains([]string{"", "everyone"}, detailOf(parent.Detail).ReplyControl) {
		refusal := graph.Refusal(10, "(#10) You are not allowed to reply to this post.")
		refusal.Status = http.StatusForbidden
		return refusal
	}
	out.Root = parent.Root
	return nil
}

// detailOf reads what readContainer kept.
func detailOf(content json.RawMessage) detail {
	var out detail
	if len(content) > 0 {
		// It was encoded here; were it unreadable, the post would be shown without it.
		_ = json.Unmarshal(content, &out)
	}
	return out
}
