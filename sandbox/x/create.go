// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// duplicateWindow is how long X rejects the same text from the same account. X does not document it; a quarter of
	// an hour fits "shortly afterwards".
	duplicateWindow = 15 * time.Minute
	// maxMedia is the maximum number of media per post.
	maxMedia = 4
)

// tweet is the simulated part of the body of POST /2/tweets. X rejects unknown fields.
type tweet struct {
	Text  string `json:"text"`
	Media *struct {
		IDs []string `json:"media_ids"`
	} `json:"media"`
	Reply *replyTo `json:"reply"`
}

// replyTo is the reply field of a post.
type replyTo struct {
	To string `json:"in_reply_to_tweet_id"`
	// Exclude are the ids of users in the conversation that must not be mentioned.
	Exclude []string `json:"exclude_reply_user_ids"`
}

// detail is the stored data of a post, apart from its text.
type detail struct {
	// Media are the attached media, in the order of the post's files.
	Media []attachment `json:"media,omitempty"`
	// Mentioned are the names that X prepends to a reply's text.
	Mentioned []string `json:"mentioned,omitempty"`
}

// detailOf decodes the detail of a post.
func detailOf(post state.Post) detail {
	var out detail
	_ = json.Unmarshal(post.Detail, &out) // a post without media has no detail
	return out
}

// createTweet handles POST /2/tweets.
func (p *Platform) createTweet(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callCreate, scopeRead, scopeWrite, scopeUsers)
	if !ok {
		return
	}
	draft, refusal := p.readTweet(r, account)
	if refusal != nil {
		p.quotaHeaders(w, account)
		p.fail(w, callCreate, refusal)
		return
	}
	post, err := p.Store.Publish(account.Key, draft)
	p.quotaHeaders(w, account)
	if err != nil {
		p.refusePost(w, account, err)
		return
	}
	p.succeed(w, callCreate, http.StatusCreated, map[string]any{
		"data": map[string]any{"id": post.ID, "text": render(post).text, "edit_history_post_ids": []string{post.ID}},
	})
}

// refusePost responds with the error for a post that the store did not accept.
func (p *Platform) refusePost(w http.ResponseWriter, account state.Account, err error) {
	if _, twice := errors.AsType[*state.DuplicateError](err); twice {
		p.fail(w, callCreate, forbidden("You are not allowed to create a Tweet with duplicate content.", typeBlank))
		return
	}
	if quota, full := errors.AsType[*state.QuotaError](err); full {
		p.limitedUntil(w, callCreate, quota.Resets)
		return
	}
	p.fail(w, callCreate, p.broken("a post could not be kept", account.ID, err))
}

// unsimulated are the documented body fields that have no effect here (OpenAPI 2.167). A lenient sandbox ignores them.
// Unknown fields are always rejected, as on X.
var unsimulated = []string{
	"additional_owners", "call_to_actions", "card_uri", "community_id", "description", "direct_message_deep_link", "edit_options",
	"embeddable", "for_super_followers_only", "geo", "made_with_ai", "nullcast", "paid_partnership", "poll", "preview_media_id",
	"quote_tweet_id", "reply_settings", "share_with_followers", "shared", "tagged_user_ids", "title",
}

// overlook removes the unsimulated fields from a body.
func overlook(content []byte) []byte {
	var body map[string]any
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return content // the reader of the body reports the error
	}
	media, _ := body["media"].(map[string]any)
	for _, name := range unsimulated {
		delete(body, name)
		delete(media, name)
	}
	out, err := json.Marshal(body)
	if err != nil {
		return content
	}
	return out
}

// readJSON decodes a JSON body and rejects unknown fields.
func (p *Platform) readJSON(r *faults.Request, into any) *problem {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != jsonType {
		return invalidBody("Requests with bodies must have content-type of application/json.")
	}
	content := r.Content
	if p.Lenient {
		content = overlook(content)
	}
	if err := simulator.Decode(content, into); err != nil {
		return invalidBody("The body does not fit the schema, or is not valid JSON: " + err.Error())
	}
	return nil
}

// readTweet reads a post from a request. It returns a problem if X would reject the post.
func (p *Platform) readTweet(r *faults.Request, author state.Account) (state.Draft, *problem) {
	var body tweet
	if with := p.readJSON(r, &body); with != nil {
		return state.Draft{}, with
	}
	draft := state.Draft{Text: body.Text, DuplicateWindow: duplicateWindow, NewID: newID}
	if with := checkText(draft.Text, body.Media != nil); with != nil {
		return state.Draft{}, with
	}
	if p.tooManyCashtags(draft.Text) {
		return state.Draft{}, forbidden("You have exceeded the maximum of one cashtag per post.", typeBlank)
	}
	var (
		kept detail
		with *problem
	)
	if body.Reply != nil {
		if kept.Mentioned, with = p.answerTo(&draft, author, *body.Reply); with != nil {
			return state.Draft{}, with
		}
	}
	if body.Media != nil {
		if n := len(body.Media.IDs); n < 1 || n > maxMedia {
			return state.Draft{}, invalidBody(fmt.Sprintf("$.media.media_ids: there must be a minimum of 1 and a maximum of %d items in the array", maxMedia))
		}
		if kept.Media, with = p.attach(&draft, body.Media.IDs, author); with != nil {
			return state.Draft{}, with
		}
	}
	if kept.Media == nil && kept.Mentioned == nil {
		return draft, nil
	}
	content, err := json.Marshal(kept)
	draft.Detail = content
	return draft, p.broken("a post could not be encoded", "", err)
}

// checkText enforces the limits on a post's text. A post with media does not need text.
func checkText(text string, media bool) *problem {
	switch weight := weigh(text); {
	case !media && strings.TrimSpace(text) == "":
		return invalidBody("$.text: a post needs text, or media")
	case strings.ContainsAny(text, "\uFFFE\uFEFF\uFFFF"):
		return invalidBody("$.text: holds a character that is not allowed")
	case weight > maxWeight:
		return invalidBody(fmt.Sprintf("$.text: your post is too long: it has %d of %d weighted characters", weight, maxWeight))
	default:
		return nil
	}
}

// answerTo finds the post being replied to, sets the draft's chain, and returns the names that X prepends to the reply.
// On a self-serve plan, an account may only reply to its own posts and to posts that mention it.
func (p *Platform) answerTo(draft *state.Draft, author state.Account, reply replyTo) ([]string, *problem) {
	id := reply.To
	if !idPattern.MatchString(id) {
		return nil, invalidBody("$.reply.in_reply_to_tweet_id: does not match the regex pattern " + idPattern.String())
	}
	parent, ok := p.Store.Post(Name, id)
	switch {
	case !ok:
		return nil, forbidden("You attempted to reply to a Tweet that is deleted or not visible to you.", typeBlank)
	case parent.AccountID != author.ID && !named(author.Username, mentions(parent.Text)):
		return nil, forbidden(notPermitted, typeBlank)
	}
	draft.InReplyTo, draft.Root = id, parent.Root
	return p.conversation(parent, author, draft.Text, reply.Exclude), nil
}

// conversation returns the names that X prepends to a reply: the parent's author and everyone whom the parent mentions,
// except the author of the reply, excluded users, and names that the reply already starts with (docs.x.com:
// fundamentals/conversation-id, and the sample of display_text_range; xdevplatform/twitter-api-typescript-sdk#93). The
// sandbox treats every name as an existing account.
func (p *Platform) conversation(parent state.Post, author state.Account, text string, exclude []string) []string {
	skip := []string{author.Username}
	for word := range strings.FieldsSeq(text) {
		if !strings.HasPrefix(word, "@") {
			break
		}
		skip = append(skip, mentions(word)...)
	}
	for _, id := range exclude {
		if account, ok := p.Store.Account(state.Key{Platform: Name, ID: id}); ok {
			skip = append(skip, account.Username)
		}
	}
	to, _ := p.Store.Account(state.Key{Platform: Name, ID: parent.AccountID})
	var out []string
	for _, name := range slices.Concat([]string{to.Username}, detailOf(parent).Mentioned, mentions(parent.Text)) {
		if !named(name, skip) {
			out, skip = append(out, name), append(skip, name)
		}
	}
	return out
}

// mentions returns the names mentioned in text.
func mentions(text string) []string {
	var out []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r != '@' && !isWord(r) }) {
		if name, found := strings.CutPrefix(word, "@"); found && name != "" && !strings.Contains(name, "@") {
			out = append(out, name)
		}
	}
	return out
}

// named reports whether a name is in a list, ignoring case.
func named(name string, among []string) bool {
	return slices.ContainsFunc(among, func(other string) bool { return strings.EqualFold(name, other) })
}

// attachment is a media file attached to a post.
type attachment struct {
	Key  string `json:"media_key"`
	Kind string `json:"type"`
}

// attach adds media to a draft. It returns a problem if X would reject them.
func (p *Platform) attach(draft *state.Draft, ids []string, author state.Account) ([]attachment, *problem) {
	var out []attachment
	for i, id := range ids {
		u, with := p.attachable(author, id)
		switch {
		case with != nil:
			return nil, with
		case slices.Contains(ids[:i], id):
			return nil, invalidBody("$.media.media_ids: the id " + id + " is there twice")
		case u.category().kind != kindPhoto && len(ids) > 1:
			return nil, forbidden(notPermitted, typeBlank)
		case u.category().kind == kindVideo && u.File.Duration > maxVideoTime:
			return nil, forbidden(fmt.Sprintf("The video is longer than allowed: %v is the most.", maxVideoTime), typeBlank)
		}
		draft.Media = append(draft.Media, simulator.MediaOf(*u.File).Described(u.AltText))
		out = append(out, attachment{Key: u.key(), Kind: u.category().kind})
	}
	// X documents its duplicate check only for text, so a post with media may be repeated and then exists twice.
	draft.DuplicateWindow = 0
	return out, nil
}

// attachable returns an upload of the account once X has processed it.
func (p *Platform) attachable(author state.Account, id string) (upload, *problem) {
	u, with := p.findMedia(author, id)
	if with != nil {
		return u, with
	}
	if u.File == nil || !u.slow() && mediaFault(&u) != "" {
		return u, badMedia()
	}
	if now := p.processing(&u); now != nil && now.State != stateSucceeded {
		return u, invalidBody(fmt.Sprintf("Your media IDs are invalid. The processing of media %s is %s.", id, now.State))
	}
	return u, nil
}
