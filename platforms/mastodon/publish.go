// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"context"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// post is the body of POST /api/v1/statuses. If the visibility, language or sensitivity is missing, the account's
// default applies.
type post struct {
	Status     string   `json:"status"`
	MediaIDs   []string `json:"media_ids,omitempty"`
	InReplyTo  string   `json:"in_reply_to_id,omitempty"`
	Spoiler    string   `json:"spoiler_text,omitempty"`
	Sensitive  bool     `json:"sensitive,omitempty"`
	Visibility string   `json:"visibility,omitempty"`
	Language   string   `json:"language,omitempty"`
}

// idempotencyKey returns the key for all calls that publish a job's content. Servers store keys per account.
func idempotencyKey(k platforms.Key) string { return hex.EncodeToString(k.Sum[:]) }

// Publish creates the post with one call to POST /api/v1/statuses.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	api, failure := p.at(job.Account.Token)
	if failure != nil {
		return platforms.Result{Outcome: platforms.NotSent, Err: failure}
	}
	ids := job.FileIDs(validID)
	if len(job.Content.Media) > 0 && ids == nil {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, "the files of the post are not uploaded yet")}
	}
	options := &job.Content.Mastodon
	resp, err := api.Do(ctx, client.Call{
		Action: "publish", Path: "/api/v1/statuses", Token: job.Account.Token.Access, Header: english(), Timeout: callTimeout,
		IdempotencyKey: idempotencyKey(job.Key),
		Body: client.JSON("application/json", post{
			Status: job.Content.Text, MediaIDs: ids, InReplyTo: job.Content.InReplyTo, Spoiler: options.ContentWarning,
			Sensitive: options.Sensitive, Visibility: string(options.Visibility), Language: job.Content.Language,
		}),
	})
	if err != nil {
		return api.PublishUnanswered(err)
	}
	result := p.publishResult(resp)
	result.RateLimits = rateLimits(resp.Header, p.config.Clock.Now())
	return result
}

func (p *Platform) publishResult(resp *transport.Response) platforms.Result {
	if resp.Status == http.StatusOK {
		made, _ := jsondoc.Decode[status](resp.Body)
		if !validID(made.ID.String()) {
			return p.api.NoID()
		}
		return platforms.Result{Outcome: platforms.Posted, ExternalID: made.ID.String(), ExternalURL: made.URL.Web(), PostedAt: made.created()}
	}
	failure, refused := p.classify(resp)
	return p.api.NotPosted(resp.Status, failure, refused)
}

// status is a post in a response (entities/Status).
type status struct {
	ID        jsondoc.Text                     `json:"id"`
	URL       jsondoc.Text                     `json:"url"`
	CreatedAt jsondoc.Text                     `json:"created_at"`
	InReplyTo jsondoc.Text                     `json:"in_reply_to_id"`
	Content   jsondoc.Text                     `json:"content"`
	Reblog    jsondoc.Optional[map[string]any] `json:"reblog"`
	Account   struct {
		ID jsondoc.Text `json:"id"`
	} `json:"account"`
	Media []struct {
		ID jsondoc.Text `json:"id"`
	} `json:"media_attachments"`
}

func (s *status) created() time.Time { return s.CreatedAt.Time() }
