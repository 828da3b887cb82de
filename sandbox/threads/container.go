// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/herald-social/herald/sandbox/emoji"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/links"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// processing is how long a container of text takes to be ready, unless the control API says otherwise. Threads does
	// not say how long it is; clients that poll see less than their first interval.
	processing = 200 * time.Millisecond
	// containerLife is after how long a container that was not published expires.
	containerLife = 24 * time.Hour
	// maxText is how long a text may be.
	maxText = 500
	// maxLinks is how many different addresses a post may have, the attached one included.
	maxLinks = 5
	// maxTopic is how long a topic may be, in characters.
	maxTopic = 50
)

// detail are the options of a container or post that are kept beside its text, for reading back.
type detail struct {
	ReplyControl string          `json:"reply_control,omitempty"`
	Topic        string          `json:"topic,omitempty"`
	Quote        string          `json:"quote,omitempty"`
	Ghost        bool            `json:"ghost,omitempty"`
	Approvals    bool            `json:"approvals,omitempty"`
	Extras       json.RawMessage `json:"extras,omitempty"`
}

// create is POST /{id}/threads.
func (p *Platform) create(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic, scopePublish)
	if bad != nil {
		return nil, bad
	}
	draft, bad := p.readContainer(c, account)
	if bad != nil {
		return nil, bad
	}
	container, err := p.Store.CreateContainer(account.Key, draft, processing, graph.NewID)
	if err != nil {
		return nil, c.Broken("keep a container", err)
	}
	if c.Params.Bool("auto_publish_text", false) {
		return p.publishContainer(c, account, container)
	}
	return map[string]string{"id": container.ID}, nil
}

// readContainer turns a request into a container, or says why Threads would refuse it.
func (p *Platform) readContainer(c *graph.Call, account state.Account) (state.Container, *graph.Error) {
	q := c.Params
	q.Required("media_type")
	kind := q.OneOf("media_type", "TEXT", "IMAGE", "VIDEO", "CAROUSEL")
	kept := detail{
		ReplyControl: q.OneOf("reply_control", "everyone", "accounts_you_follow", "mentioned_only", "parent_post_author_only", "followers_only"),
		Topic:        q.Text("topic_tag"), Quote: q.Text("quote_post_id"), Ghost: q.Bool("is_ghost_post", false),
		Approvals: q.Bool("enable_reply_approvals", false), Extras: extras(q),
	}
	out := state.Container{Text: q.Text("text"), Link: q.Text("link_attachment"), InReplyTo: q.Text("reply_to_id")}
	q.Bool("auto_publish_text", false)
	q.Text("location_id")
	q.Text("allowlisted_country_codes")
	media := mediaParams(q)
	if bad := q.End(); bad != nil {
		return out, bad
	}
	if kind != "TEXT" {
		return out, noMedia(kind)
	}
	if len(media) > 0 {
		return out, graph.BadParam("Param %s is not allowed for media_type TEXT.", media[0])
	}
	if bad := checkText(out.Text, out.Link); bad != nil {
		return out, bad
	}
	if bad := checkTopic(q.Has("topic_tag"), &kept, out.Text); bad != nil {
		return out, bad
	}
	if bad := p.checkReferences(c, &out, kept, account); bad != nil {
		return out, bad
	}
	content, err := json.Marshal(kept)
	if err != nil {
		return out, c.Broken("encode a container", err)
	}
	out.Detail = content
	return out, nil
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

// mediaParams names the given parameters that are for images and videos only.
func mediaParams(q *graph.Params) []string {
	var out []string
	for _, name := range []string{"image_url", "video_url", "alt_text", "children", "is_carousel_item", "is_spoiler_media"} {
		if q.Text(name) != "" {
			out = append(out, name)
		}
	}
	return out
}

// noMedia refuses what cannot be simulated without fetching media.
func noMedia(kind string) *graph.Error {
	if kind == "CAROUSEL" {
		return graph.BadParam("Param children must be 2 to 20 ids of containers that are ready and carousel items.")
	}
	return graph.Refusal(9004, "The media could not be fetched from this URI.").Because(2207052, "Media download has failed",
		"The sandbox simulates posts of text on Threads; it fetches no media.")
}

// checkText applies the limits of a text and of its addresses.
func checkText(text, attached string) *graph.Error {
	found := map[string]bool{}
	for _, l := range links.Find(text) {
		found[text[l[0]:l[1]]] = true
	}
	if attached != "" {
		address, err := url.Parse(attached)
		if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
			return graph.BadParam("Param link_attachment must be a valid URL.")
		}
		found[attached] = true
	}
	switch {
	case strings.TrimSpace(text) == "":
		return graph.BadParam("The parameter text is required for media_type TEXT.")
	case textLength(text) > maxText:
		return graph.BadParam("Param text must be at most %d characters long.", maxText)
	case len(found) > maxLinks:
		return graph.BadParam("THREADS_API__LINK_LIMIT_EXCEEDED: a post may have at most %d links.", maxLinks)
	}
	return nil
}

// textLength counts as Threads does: an emoji costs the bytes of its UTF-8, everything else that a reader takes for one
// character costs 1.
func textLength(text string) int {
	n, step := 0, -1
	for text != "" {
		var cluster string
		cluster, text, _, step = uniseg.FirstGraphemeClusterInString(text, step)
		if emoji.Is(cluster) {
			n += len(cluster)
		} else {
			n++
		}
	}
	return n
}

// checkTopic checks the topic, or takes the first tag of the text for one.
func checkTopic(given bool, kept *detail, text string) *graph.Error {
	if !given {
		kept.Topic = firstTag(text)
		return nil
	}
	n := utf8.RuneCountInString(kept.Topic)
	if n < 1 || n > maxTopic || strings.ContainsAny(kept.Topic, ".&") {
		return graph.BadParam("Param topic_tag must have 1 to %d characters, without full stops and ampersands.", maxTopic)
	}
	return nil
}

func firstTag(text string) string {
	previous := ' '
	for i, r := range text {
		if r == '#' && !isWord(previous) {
			tag, _, _ := strings.Cut(text[i+1:], "#")
			if end := strings.IndexFunc(tag, func(r rune) bool { return !isWord(r) }); end >= 0 {
				tag = tag[:end]
			}
			if tag != "" && utf8.RuneCountInString(tag) <= maxTopic {
				return tag
			}
		}
		previous = r
	}
	return ""
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

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
