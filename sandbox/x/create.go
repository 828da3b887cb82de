// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// duplicateWindow is how long X refuses the same text from the same account. X does not say how long it is; a quarter of
// an hour is "shortly afterwards".
const duplicateWindow = 15 * time.Minute

// tweetSchema is the body of POST /2/tweets. Nothing else is allowed in it.
func tweetSchema() rule {
	id := stringOf(1, 19, idPattern)
	return object(map[string]rule{
		"text": stringOf(0, maxBodyText, nil),
		"media": object(map[string]rule{
			"media_ids":        list(1, 4, id),
			"tagged_user_ids":  list(0, 10, id),
			"title":            stringOf(0, maxBodyText, nil),
			"description":      stringOf(0, maxBodyText, nil),
			"preview_media_id": id,
			"embeddable":       boolean,
			"call_to_actions":  object(map[string]rule{}),
		}),
		"reply": object(map[string]rule{
			"in_reply_to_tweet_id":   id,
			"exclude_reply_user_ids": list(0, 10, id),
		}),
		"reply_settings": oneOf("following", "mentionedUsers", "subscribers", "verified"),
		"quote_tweet_id": id,
		"poll": object(map[string]rule{
			"options":          list(2, 4, stringOf(1, 25, nil)),
			"duration_minutes": integer(5, 10080),
		}),
		"made_with_ai":             boolean,
		"paid_partnership":         boolean,
		"community_id":             id,
		"share_with_followers":     boolean,
		"for_super_followers_only": boolean,
		"nullcast":                 boolean,
		"geo":                      object(map[string]rule{"place_id": stringOf(1, maxBodyText, nil)}),
		"card_uri":                 stringOf(1, maxBodyText, nil),
		"direct_message_deep_link": stringOf(1, maxBodyText, nil),
		"edit_options":             object(map[string]rule{"previous_post_id": id}),
	})
}

// maxBodyText bounds strings whose length the schema does not; the length of a post's text is counted by weight.
const maxBodyText = 100_000

// The fields of a post that are kept beside its text, for reading back.
type detail struct {
	ReplySettings   string `json:"reply_settings,omitempty"`
	MadeWithAI      bool   `json:"made_with_ai,omitempty"`
	PaidPartnership bool   `json:"paid_partnership,omitempty"`
	// Media are what was attached, in the order of the post's files.
	Media []attachment `json:"media,omitempty"`
}

type createAnswer struct {
	Data struct {
		ID      string   `json:"id"`
		Text    string   `json:"text"`
		History []string `json:"edit_history_post_ids"`
	} `json:"data"`
}

// createTweet is POST /2/tweets.
func (p *Platform) createTweet(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callCreate, scopeRead, scopeWrite, scopeUsers)
	if !ok {
		return
	}
	body, refusal := p.readTweet(r, account)
	if refusal != nil {
		p.quotaHeaders(w, account)
		p.fail(w, callCreate, *refusal)
		return
	}
	post, err := p.Store.Publish(account.Key, body)
	p.quotaHeaders(w, account)
	if err != nil {
		p.refusePost(w, account, err)
		return
	}
	var out createAnswer
	out.Data.ID, out.Data.History = post.ID, []string{post.ID}
	out.Data.Text = render(post).text
	p.succeed(w, callCreate, http.StatusCreated, out)
}

// refusePost answers that the store did not take a post.
func (p *Platform) refusePost(w http.ResponseWriter, account state.Account, err error) {
	var (
		duplicate *state.DuplicateError
		quota     *state.QuotaError
	)
	switch {
	case errors.As(err, &duplicate):
		p.fail(w, callCreate, forbidden("You are not allowed to create a Tweet with duplicate content."))
	case errors.As(err, &quota):
		p.limitedUntil(w, callCreate, quota.Resets)
	default:
		p.Logger.Error("a post could not be kept", "platform", Name, "account", account.ID, "error", err)
		p.fail(w, callCreate, internal())
	}
}

// readTweet turns a request into a post, or says why X would refuse it.
func (p *Platform) readTweet(r *faults.Request, author state.Account) (state.Draft, *problem) {
	body, with := readJSON(r, tweetRule)
	if with != nil {
		return state.Draft{}, with
	}
	if with := checkCombination(body); with != nil {
		return state.Draft{}, with
	}
	draft := state.Draft{
		Text: member[string](body, "text"), InReplyTo: member[string](body, "reply", "in_reply_to_tweet_id"),
		DuplicateWindow: duplicateWindow, NewID: newID,
	}
	if with := checkText(draft.Text, has(body, "media")); with != nil {
		return state.Draft{}, with
	}
	if with := p.checkReply(&draft, author); with != nil {
		return state.Draft{}, with
	}
	extra := detail{
		ReplySettings: member[string](body, "reply_settings"), MadeWithAI: member[bool](body, "made_with_ai"),
		PaidPartnership: member[bool](body, "paid_partnership"),
	}
	if extra.Media, with = p.attach(&draft, body, author); with != nil {
		return state.Draft{}, with
	}
	content, err := json.Marshal(extra)
	if err != nil {
		return state.Draft{}, p.broken("the options of a post could not be encoded", "", err)
	}
	if string(content) != "{}" {
		draft.Detail = content
	}
	return draft, nil
}

// tweetRule is built once: it never changes.
var tweetRule = tweetSchema()

// checkCombination applies what the schema says about several fields at once, and what an ordinary account on a
// self-serve plan may not do.
func checkCombination(body any) *problem {
	exclusive := 0
	for _, name := range []string{"media", "poll", "quote_tweet_id"} {
		if has(body, name) {
			exclusive++
		}
	}
	var with problem
	switch {
	case exclusive > 1:
		with = invalidBody("$: only one of media, poll and quote_tweet_id may be given")
	case has(body, "reply") && member[string](body, "reply", "in_reply_to_tweet_id") == "":
		with = invalidBody("$.reply.in_reply_to_tweet_id: is missing but it is required")
	case has(body, "poll") && (!has(member[any](body, "poll"), "options") || !has(member[any](body, "poll"), "duration_minutes")):
		with = invalidBody("$.poll: options and duration_minutes are required")
	case has(body, "media") && !has(member[any](body, "media"), "media_ids"):
		with = invalidBody("$.media.media_ids: is missing but it is required")
	case has(body, "quote_tweet_id"):
		with = forbidden("Quoting a post through the API needs an Enterprise plan.")
		with.Type = problemURL + "client-forbidden"
	case has(body, "edit_options"), has(body, "for_super_followers_only"), has(body, "community_id"):
		with = forbidden(notPermitted)
	default:
		return nil
	}
	return &with
}

// checkText applies the limits of a post's text. A post with media needs none.
func checkText(text string, media bool) *problem {
	var with problem
	switch weight := weigh(text); {
	case !media && strings.TrimSpace(text) == "":
		with = invalidBody("$.text: a post needs text, or media")
	case strings.ContainsFunc(text, isInvalid):
		with = invalidBody("$.text: holds a character that is not allowed")
	case weight > maxWeight:
		with = invalidBody(fmt.Sprintf("$.text: your post is too long: it has %d of %d weighted characters", weight, maxWeight))
	case cashtags(text) > 1:
		with = forbidden("You may include a maximum of one cashtag in a post.")
	default:
		return nil
	}
	return &with
}

// cashtags counts the words like $ABC.
func cashtags(text string) int {
	n := 0
	for word := range strings.FieldsSeq(text) {
		symbol, found := strings.CutPrefix(word, "$")
		letters := strings.IndexFunc(symbol, func(r rune) bool { return !unicode.IsLetter(r) })
		if letters < 0 {
			letters = len(symbol)
		}
		if found && 1 <= letters && letters <= 6 && (letters == len(symbol) || !isAlnum(rune(symbol[letters]))) {
			n++
		}
	}
	return n
}

// checkReply finds the post that is answered and fills in its chain. On a self-serve plan one may answer one's own
// posts, and those whose author has mentioned one there.
func (p *Platform) checkReply(draft *state.Draft, author state.Account) *problem {
	if draft.InReplyTo == "" {
		return nil
	}
	parent, ok := p.Store.Post(Name, draft.InReplyTo)
	if !ok {
		with := forbidden("You attempted to reply to a Tweet that is deleted or not visible to you.")
		return &with
	}
	if parent.AccountID != author.ID && !mentions(parent.Text, author.Username) {
		with := forbidden(notPermitted)
		return &with
	}
	draft.Root = parent.Root
	return nil
}

func mentions(text, username string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '@' && r != '_' && !isAlnum(r) }) {
		if name, found := strings.CutPrefix(word, "@"); found && strings.EqualFold(name, username) {
			return true
		}
	}
	return false
}

// deleteTweet is DELETE /2/tweets/{id}.
func (p *Platform) deleteTweet(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callDelete, scopeRead, scopeWrite, scopeUsers)
	if !ok {
		return
	}
	id := r.PathValue("id")
	post, ok := p.Store.Post(Name, id)
	switch {
	case !ok:
		p.fail(w, callDelete, notFound("Could not find a post with id: ["+id+"]."))
		return
	case post.AccountID != account.ID:
		p.fail(w, callDelete, forbidden(notPermitted))
		return
	}
	if err := p.Store.Delete(account.Key, id); err != nil && !errors.Is(err, state.ErrNoPost) {
		p.Logger.Error("a deletion could not be kept", "platform", Name, "post", id, "error", err)
		p.fail(w, callDelete, internal())
		return
	}
	p.succeed(w, callDelete, http.StatusOK, map[string]any{"data": map[string]bool{"deleted": true}})
}
