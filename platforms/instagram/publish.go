// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

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

const (
	msgNoID       = "Instagram confirmed the post without a readable id; Herald looks for it in the account's posts"
	msgInDoubt    = "Instagram answered with HTTP status %d, which does not tell whether it published the post; Herald asks for it"
	msgUnprepared = "the post was not prepared; Herald tries again"
	msgNotYet     = "Instagram cannot publish the post yet; Herald tries again"
)

// Publish makes the prepared container visible by one call to media_publish.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	if !meta.ValidID(job.Checkpoint) {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, msgUnprepared)}
	}
	t := p.task(job)
	resp, err := t.host.graph.Do(ctx, meta.Call{
		Action: "publish", Path: t.host.path("/" + url.PathEscape(job.Account.ID) + "/media_publish"), Token: job.Account.Token.Access,
		Form: url.Values{"creation_id": {job.Checkpoint}}, Timeout: callTimeout,
	})
	switch {
	case err != nil && notSent(err):
		return platforms.Result{Outcome: platforms.NotSent, Err: unanswered(err)}
	case err != nil:
		return platforms.Result{Outcome: platforms.Unknown, Err: &platforms.Error{Class: platforms.ClassUnknown, Problem: msgLost, Err: err}}
	}
	result := t.host.judge(resp)
	used := meta.UsedOf(resp.Header)
	result.RateLimits = platforms.UsageLimits(used.App, used.Account, used.ShutOut, t.host.clock.Now())
	switch {
	case result.Outcome == platforms.Posted:
		result.ExternalURL, result.PostedAt = t.permalink(ctx, result.ExternalID)
	case result.Outcome == platforms.Refused && aboutContainer(result.Err.Class):
		result = t.doubleCheck(ctx, result)
	}
	return result
}

// judge decides what an answer to media_publish says about the post.
func (h *host) judge(resp *transport.Response) platforms.Result {
	if resp.Status >= http.StatusOK && resp.Status < http.StatusMultipleChoices {
		doc, _ := jsondoc.Parse(resp.Body)
		id := doc.Text("id")
		if !meta.ValidID(id) {
			return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, msgNoID)}
		}
		return platforms.Result{Outcome: platforms.Posted, ExternalID: id}
	}
	bad := h.classify(resp, thePost)
	switch {
	case !bad.said.Refusal():
		return platforms.Result{Outcome: platforms.Unknown, Err: &platforms.Error{
			Class: platforms.ClassUnknown, Problem: fmt.Sprintf(msgInDoubt, resp.Status), Err: bad.said,
		}}
	case bad.Class == platforms.ClassDuplicate:
		// It may repeat this very post, from a call whose answer was lost.
		return platforms.Result{Outcome: platforms.Unknown, Err: bad.Error}
	}
	return platforms.Result{Outcome: platforms.Refused, Err: bad.Error}
}

// aboutContainer tells whether a refusal may be about the container, as one
// that has become visible already: other refusals are about the account.
func aboutContainer(class platforms.Class) bool {
	return class == platforms.ClassPermanent || class == platforms.ClassTransient
}

// doubleCheck asks the container whether a refusal holds: Instagram also refuses
// to publish what is published, and documents no words for that.
func (t *task) doubleCheck(ctx context.Context, refused platforms.Result) platforms.Result {
	found, _, bad := t.state(ctx, t.job.Checkpoint)
	switch {
	case bad != nil, found == meta.StatePublished:
		refused.Outcome = platforms.Unknown
	case found != meta.StateFinished && found != meta.StateInProgress && refused.Err.Class == platforms.ClassPermanent:
		// The container has ended, which another one mends.
		refused.Err.Class, refused.Err.Problem = platforms.ClassTransient, msgNotYet
	}
	return refused
}

// permalink reads the address of a post and when it was published. Without an
// answer the post has no address here; it is published all the same.
func (t *task) permalink(ctx context.Context, id string) (string, time.Time) {
	doc, bad := t.host.ask(ctx, meta.Call{
		Action: "permalink", Path: t.host.path("/" + url.PathEscape(id) + "?fields=id,permalink,timestamp"), Token: t.job.Account.Token.Access,
		Timeout: permalinkTimeout,
	}, thePost)
	if bad != nil {
		return "", time.Time{}
	}
	return doc.Text("permalink"), meta.ParseTime(doc.Text("timestamp"))
}
