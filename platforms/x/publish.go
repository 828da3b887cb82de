// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"context"
	"net/http"
	"net/url"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// asJSON is what X reads as JSON.
func asJSON(v any) client.Body { return client.JSON("application/json", v) }

// Publish creates the post by one call to POST /2/tweets.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	ids := job.FileIDs(validID)
	if p.Prepares(job.Content) && ids == nil {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, msgUnprepared)}
	}
	resp, err := p.api.Do(ctx, client.Call{
		Action: "publish", Path: "/2/tweets", Token: job.Account.Token.Access, Body: asJSON(newTweet(job.Content, ids)), Timeout: callTimeout,
	})
	if err != nil {
		return p.api.PublishUnanswered(err)
	}
	result := p.judge(resp, job.Account)
	result.RateLimits = rateLimits(resp.Header, p.clock.Now())
	return result
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
	failure, refused := p.classify(resp)
	switch {
	case !refused:
		result := p.api.InDoubt(resp.Status, failure.Err)
		result.Err.RetryAt, result.Err.AppWide = failure.RetryAt, failure.AppWide
		return result
	case failure.Class == platforms.ClassDuplicate:
		// It may repeat this very post, from a call whose answer was lost.
		return platforms.Result{Outcome: platforms.Unknown, Err: failure}
	default:
		return platforms.Result{Outcome: platforms.Refused, Err: failure}
	}
}

// confirmed reads the id of a post that X says it created.
func (p *Platform) confirmed(resp *transport.Response, account platforms.Account) platforms.Result {
	id := createdID(resp.Body)
	if id == "" {
		return p.api.NoID()
	}
	result := platforms.Result{Outcome: platforms.Posted, ExternalID: id, ExternalURL: p.postURL(account, id)}
	result.PostedAt, _ = snowflakeTime(id)
	return result
}

// createdID reads the id in the answer to a call that creates something; ""
// if there is none.
func createdID(body []byte) string {
	doc, _ := jsondoc.Decode[struct {
		Data struct {
			ID jsondoc.Text `json:"id"`
		} `json:"data"`
	}](body)
	if id := doc.Data.ID.String(); validID(id) {
		return id
	}
	return ""
}

// postURL is where people read a post.
func (p *Platform) postURL(account platforms.Account, id string) string {
	author := account.Username
	if author == "" {
		author = "i"
	}
	return p.webURL + "/" + url.PathEscape(author) + "/status/" + url.PathEscape(id)
}

// validID reports whether this can be an id of X's, and a part of an address.
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
