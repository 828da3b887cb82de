// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	msgNoID    = "Facebook confirmed the post without a readable id; Herald looks for it among the Page's posts"
	msgInDoubt = "Facebook answered with HTTP status %d, which does not tell whether it published the post; Herald looks for it among the Page's posts"
)

// Publish creates the post by one call to POST /{page}/feed, which answers with
// the post's address as well.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	ids := job.FileIDs(meta.ValidID)
	if p.Prepares(job.Content) && ids == nil {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, msgUnprepared)}
	}
	form := url.Values{"message": {job.Content.Text}}
	attach(form, ids)
	resp, err := p.graph.Do(ctx, meta.Call{
		Action: "publish", Path: p.path("/" + url.PathEscape(job.Account.ID) + "/feed?fields=id,permalink_url"), Token: job.Account.Token.Access,
		Form: form, Timeout: callTimeout,
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
	return result
}

// judge decides what an answer to POST /{page}/feed says about the post.
func (p *Platform) judge(resp *transport.Response) platforms.Result {
	if resp.Status >= http.StatusOK && resp.Status < http.StatusMultipleChoices {
		doc, _ := jsondoc.Parse(resp.Body)
		id := doc.Text("id")
		if !meta.ValidID(id) {
			return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, msgNoID)}
		}
		return platforms.Result{Outcome: platforms.Posted, ExternalID: id, ExternalURL: p.postURL(id, doc)}
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
	default:
		return platforms.Result{Outcome: platforms.Refused, Err: failure}
	}
}

// postURL is where people read a post: what Facebook says, of which it
// sometimes gives the path only, or else the documented form.
func (p *Platform) postURL(id string, post jsondoc.Object) string {
	switch address := post.Text("permalink_url"); {
	case strings.HasPrefix(address, "/"):
		return p.config.WebURL + address
	case address != "":
		return address
	default:
		return p.config.WebURL + "/" + id
	}
}
