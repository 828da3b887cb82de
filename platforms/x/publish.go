// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

const (
	msgNoID    = "X confirmed the post without a readable id; Herald looks for it in the account's timeline"
	msgInDoubt = "X answered with HTTP status %d, which does not tell whether it published the post; Herald looks for it in the account's timeline"
)

// Publish creates the post by one call to POST /2/tweets.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	ids := job.FileIDs(validID)
	if p.Prepares(job.Content) && ids == nil {
		return notSent(platforms.Errorf(platforms.ClassTransient, msgUnprepared))
	}
	body, err := encode(newTweet(job.Content, ids))
	if err != nil {
		return notSent(platforms.Errorf(platforms.ClassPermanent, "the text cannot be written as JSON; remove unusual characters"))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.config.APIURL+"/2/tweets", body)
	if err != nil {
		return notSent(badAddress(err))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+job.Account.Token.Access)
	resp, err := p.client.Do(ctx, call("publish", callTimeout), req)
	if err != nil {
		return unheard(err)
	}
	result := p.judge(resp, job.Account)
	result.RateLimits = rateLimits(resp.Header, p.config.Clock.Now())
	return result
}

// encode writes a body as JSON. Marshal would write <, > and & as escapes. X
// reads them just the same, but what is sent should be what was written.
func encode(body any) (*bytes.Buffer, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, fmt.Errorf("write as JSON: %w", err)
	}
	return &out, nil
}

// tweet is the body of POST /2/tweets.
type tweet struct {
	Text  string `json:"text,omitempty"`
	Media *media `json:"media,omitempty"`
	Reply *reply `json:"reply,omitempty"`
}

// media is what a post shows.
type media struct {
	IDs []string `json:"media_ids"`
}

// reply says which post a post hangs from.
type reply struct {
	InReplyTo string `json:"in_reply_to_tweet_id"`
}

func newTweet(content platforms.Content, mediaIDs []string) tweet {
	out := tweet{Text: content.Text}
	if len(mediaIDs) > 0 {
		out.Media = &media{IDs: mediaIDs}
	}
	if content.InReplyTo != "" {
		out.Reply = &reply{InReplyTo: content.InReplyTo}
	}
	return out
}

// judge decides what an answer to POST /2/tweets says about the post.
func (p *Platform) judge(resp *transport.Response, account platforms.Account) platforms.Result {
	if resp.Status >= http.StatusOK && resp.Status < http.StatusMultipleChoices {
		return p.confirmed(resp, account)
	}
	failure, refused := classify(resp, p.config.Clock.Now())
	switch {
	case !refused:
		failure.Class, failure.Problem = platforms.ClassUnknown, fmt.Sprintf(msgInDoubt, resp.Status)
		return platforms.Result{Outcome: platforms.Unknown, Err: failure}
	case failure.Class == platforms.ClassDuplicate:
		// It may repeat this very post, from a call whose answer was lost.
		return platforms.Result{Outcome: platforms.Unknown, Err: failure}
	default:
		return platforms.Result{Outcome: platforms.Refused, Err: failure}
	}
}

// confirmed reads the id of a post that X says it created.
func (p *Platform) confirmed(resp *transport.Response, account platforms.Account) platforms.Result {
	doc, _ := decodeObject(resp.Body)
	id := textOf(object(doc["data"])["id"])
	if !validID(id) {
		return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, msgNoID)}
	}
	result := platforms.Result{Outcome: platforms.Posted, ExternalID: id, ExternalURL: p.postURL(account, id)}
	result.PostedAt, _ = snowflakeTime(id)
	return result
}

// postURL is where people read a post.
func (p *Platform) postURL(account platforms.Account, id string) string {
	author := account.Username
	if author == "" {
		author = "i"
	}
	return p.config.WebURL + "/" + url.PathEscape(author) + "/status/" + url.PathEscape(id)
}

// validID tells whether this can be an id of X's, and a part of an address.
func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range id {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// unheard says what the absence of an answer means for a call that publishes.
func unheard(err error) platforms.Result {
	failure, ok := errors.AsType[*transport.Error](err)
	if ok && !failure.Sent {
		return notSent(&platforms.Error{Class: platforms.ClassTransient, Problem: msgNotSent, Err: err})
	}
	return platforms.Result{
		Outcome: platforms.Unknown,
		Err:     &platforms.Error{Class: platforms.ClassUnknown, Problem: msgLost, Err: err},
	}
}

func notSent(failure *platforms.Error) platforms.Result {
	return platforms.Result{Outcome: platforms.NotSent, Err: failure}
}

// msgLostOrNotSent tells people how far a call came.
func msgLostOrNotSent(err error) string {
	if failure, ok := errors.AsType[*transport.Error](err); ok && !failure.Sent {
		return msgNotSent
	}
	return msgLost
}
