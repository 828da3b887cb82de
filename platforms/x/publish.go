// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

func asJSON(v any) client.Body { return client.JSON("application/json", v) }

// Publish creates the post with one call to POST /2/tweets.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	ids := job.FileIDs(validID)
	if p.Prepares(job.Content) && ids == nil {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, msgUnprepared)}
	}
	resp, err := p.API.Do(ctx, client.Call{
		Action: "publish", Path: "/2/tweets", Token: job.Account.Token.Access, Body: asJSON(newTweet(job.Content, ids)), Timeout: callTimeout,
	})
	if err != nil {
		return p.API.PublishUnanswered(err)
	}
	result := p.publishResult(resp, &job)
	if result.Outcome == platforms.Refused && errors.Is(result.Err, errNotFound) {
		p.lost.Add(job.Checkpoint, true)
	}
	result.RateLimits = rateLimits(resp.Header, p.Clock.Now())
	return result
}

// tweet is the body of POST /2/tweets. The text is sent even if it is empty: according to X's OpenAPI document 2.167
// (August 2026, the body of POST /2/tweets) the service rejects a post without it.
type tweet struct {
	Text  string `json:"text"`
	Media struct {
		IDs []string `json:"media_ids"`
	} `json:"media,omitzero"`
	Reply struct {
		To string `json:"in_reply_to_tweet_id"`
	} `json:"reply,omitzero"`
}

func newTweet(content platforms.Content, mediaIDs []string) tweet {
	out := tweet{Text: content.Text}
	out.Media.IDs, out.Reply.To = mediaIDs, content.InReplyTo
	return out
}

func (p *Platform) publishResult(resp *transport.Response, job *platforms.Job) platforms.Result {
	if resp.Status >= http.StatusOK && resp.Status < http.StatusMultipleChoices {
		return p.confirmed(resp, job.Account)
	}
	failure, refused := p.classifyPost(resp, &job.Content)
	return p.API.NotPosted(resp.Status, failure, refused)
}

func (p *Platform) confirmed(resp *transport.Response, account platforms.Account) platforms.Result {
	id := createdID(resp.Body)
	if id == "" {
		return p.API.NoID()
	}
	result := platforms.Result{Outcome: platforms.Posted, ExternalID: id, ExternalURL: p.postURL(account, id)}
	result.PostedAt, _ = snowflakeTime(id)
	return result
}

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

func (p *Platform) postURL(account platforms.Account, id string) string {
	return p.WebURL + "/" + url.PathEscape(cmp.Or(account.Username, "i")) + "/status/" + url.PathEscape(id)
}

// validID reports whether a string can be one of X's ids and a path segment.
func validID(id string) bool { return text.Consists(id, 1, 64, text.Letters+text.Digits+"_-") }
