// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// Publish creates the post with one call to POST /{page}/feed, whose response also contains the permalink. A post that
// was created unpublished is published by its id instead. The checkpoint decides this, rather than TwoSteps, which may
// have changed in the meantime.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	if id := draftOf(job.Checkpoint); id != "" {
		return p.publishDraft(ctx, &job, id)
	}
	ids := job.FileIDs(meta.ValidID)
	if p.Prepares(job.Content) && ids == nil {
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, msgUnprepared)}
	}
	form := postForm(&job.Content, ids)
	result, answer := p.graph.Publish(ctx, client.Call{
		Action: "publish", Path: p.graph.AccountPath(&job.Account, "feed?fields=id,permalink_url"), Token: job.Account.Token.Access,
		Body: client.Fields(form), Timeout: callTimeout,
	})
	if result.Outcome == platforms.Refused {
		p.checkPhotos(ctx, job, ids, &result)
	}
	p.locate(&result, answer)
	return result
}

func postForm(content *platforms.Content, photos []string) url.Values {
	form := url.Values{}
	if content.Text != "" {
		form.Set("message", content.Text)
	}
	for i, id := range photos {
		form.Set(fmt.Sprintf("attached_media[%d]", i), fmt.Sprintf(`{"media_fbid":%q}`, id))
	}
	return form
}

func (p *Platform) locate(r *platforms.Result, answer []byte) {
	if r.Outcome == platforms.Posted {
		post, _ := jsondoc.Decode[entry](answer)
		r.ExternalURL = p.postURL(&post)
	}
}

// postURL returns a post's public address: Facebook's permalink, which is sometimes only a path, or the documented form
// if there is none.
func (p *Platform) postURL(post *entry) string {
	switch address := post.Permalink.String(); {
	case strings.HasPrefix(address, "/"):
		return p.webURL + address
	case post.Permalink.Web() != "":
		return address
	default:
		return p.webURL + "/" + post.ID.String()
	}
}
