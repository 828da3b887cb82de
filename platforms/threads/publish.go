// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// codeMediaNotFound is what Threads answers when it cannot publish a container
// yet, sometimes even when it is ready, or when it has published it already.
const codeMediaNotFound = 24

const (
	msgNoID       = "Threads confirmed the post without a readable id; Herald looks for it in the account's posts"
	msgInDoubt    = "Threads answered with HTTP status %d, which does not tell whether it published the post; Herald asks for it"
	msgUnprepared = "the post was not prepared; Herald tries again"
	msgNotYet     = "Threads cannot publish the post yet; Herald tries again"
)

// Publish makes the prepared container visible by one call to threads_publish.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	if !meta.ValidID(job.Checkpoint) {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, msgUnprepared)}
	}
	resp, err := p.graph.Do(ctx, meta.Call{
		Action: "publish", Path: p.path("/" + url.PathEscape(job.Account.ID) + "/threads_publish"), Token: job.Account.Token.Access,
		Form: url.Values{"creation_id": {job.Checkpoint}}, Timeout: callTimeout,
	})
	switch {
	case err != nil && notSent(err):
		return platforms.Result{Outcome: platforms.NotSent, Err: unanswered(err)}
	case err != nil:
		return platforms.Result{Outcome: platforms.Unknown, Err: &platforms.Error{Class: platforms.ClassUnknown, Problem: msgLost, Err: err}}
	}
	result := p.judge(resp)
	used := meta.UsedOf(resp.Header)
	result.RateLimits = platforms.UsageLimits(used.App, used.Account, used.ShutOut, p.config.Clock.Now())
	switch {
	case result.Outcome == platforms.Posted:
		result.ExternalURL, result.PostedAt = p.permalink(ctx, job, result.ExternalID)
	case result.Outcome == platforms.Refused && aboutContainer(result.Err.Class):
		result = p.doubleCheck(ctx, job, result)
	}
	return result
}

// judge decides what an answer to threads_publish says about the post.
func (p *Platform) judge(resp *transport.Response) platforms.Result {
	if resp.Status >= http.StatusOK && resp.Status < http.StatusMultipleChoices {
		doc, _ := jsondoc.Parse(resp.Body)
		id := doc.Text("id")
		if !meta.ValidID(id) {
			return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, msgNoID)}
		}
		return platforms.Result{Outcome: platforms.Posted, ExternalID: id}
	}
	failure, said := p.classify(resp)
	switch {
	case !said.Refusal():
		return platforms.Result{Outcome: platforms.Unknown, Err: &platforms.Error{
			Class: platforms.ClassUnknown, Problem: fmt.Sprintf(msgInDoubt, resp.Status), Err: said,
		}}
	case failure.Class == platforms.ClassDuplicate:
		// It may repeat this very post, from a call whose answer was lost.
		return platforms.Result{Outcome: platforms.Unknown, Err: failure}
	case said.Code == codeMediaNotFound:
		failure.Class, failure.Problem = platforms.ClassTransient, msgNotYet
	}
	return platforms.Result{Outcome: platforms.Refused, Err: failure}
}

// aboutContainer tells whether a refusal may be about the container, as one
// that has become visible already: other refusals are about the account.
func aboutContainer(class platforms.Class) bool {
	return class == platforms.ClassPermanent || class == platforms.ClassTransient
}

// doubleCheck asks the container whether a refusal holds: Threads also refuses
// to publish what is published.
func (p *Platform) doubleCheck(ctx context.Context, job platforms.Job, refused platforms.Result) platforms.Result {
	found, _, err := p.containerState(ctx, job, job.Checkpoint)
	switch {
	case err != nil, found == meta.StatePublished:
		refused.Outcome = platforms.Unknown
	case found != meta.StateFinished && found != meta.StateInProgress && refused.Err.Class == platforms.ClassPermanent:
		// The container has ended, which another one mends.
		refused.Err.Class, refused.Err.Problem = platforms.ClassTransient, msgNotYet
	}
	return refused
}

// permalink reads the address of a post and when it was published. Without an
// answer the post has no address here; it is published all the same.
func (p *Platform) permalink(ctx context.Context, job platforms.Job, id string) (string, time.Time) {
	resp, failed := p.ask(ctx, meta.Call{
		Action: "permalink", Path: p.path("/" + url.PathEscape(id) + "?fields=id,permalink,timestamp"), Token: job.Account.Token.Access,
		Timeout: permalinkTimeout,
	})
	if failed != nil {
		return "", time.Time{}
	}
	doc, _ := jsondoc.Parse(resp.Body)
	return doc.Text("permalink"), meta.ParseTime(doc.Text("timestamp"))
}
