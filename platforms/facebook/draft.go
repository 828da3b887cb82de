// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// With Config.TwoSteps, Prepare creates the post unpublished, and Publish publishes it by its id.
// docs/facebook-two-steps.md quotes the parts of Meta's documentation that this relies on.

// draftCheckpoint is the prefix of a checkpoint that holds the id of an unpublished post.
const draftCheckpoint = "draft:"

const (
	msgDraftLost  = "Facebook no longer has the post that was prepared"
	msgDraftState = "Facebook did not report whether the prepared post is published"
	msgRepetition = "Facebook refused the post as a duplicate of an earlier one on the Page"
)

// draftOf returns the id of the unpublished post from a checkpoint, or "" if there is none.
func draftOf(checkpoint string) string {
	id, isDraft := strings.CutPrefix(checkpoint, draftCheckpoint)
	if !isDraft || !meta.ValidID(id) {
		return ""
	}
	return id
}

type draft struct {
	entry

	Published *jsondoc.Flag `json:"is_published"`
}

// readDraft reads whether a prepared post is published. there is false if Facebook does not return the post.
func (p *Platform) readDraft(ctx context.Context, job *platforms.Job, id string) (found draft, there bool, err *platforms.Error) {
	found, bad := meta.Get[draft](ctx, &p.graph, "status", "/"+url.PathEscape(id)+"?fields=id,is_published,permalink_url", job.Account.Token)
	switch {
	case bad != nil && bad.GraphError.Missing():
		return draft{}, false, nil
	case bad != nil:
		return draft{}, false, bad.Error
	case found.Published == nil:
		return draft{}, false, platforms.Errorf(platforms.ClassUnknown, msgDraftState)
	}
	return found, true, nil
}

// prepareDraft creates the post unpublished. If the response is lost, this leaves behind a draft that only the Page's
// administrators can see.
func (p *Platform) prepareDraft(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	kept := job.FileIDs(meta.ValidID) != nil
	ids, err := p.photos(ctx, job)
	if err != nil {
		return "", err
	}
	if len(ids) > 0 {
		if err := job.SaveCheckpoint(ctx, platforms.JoinFileIDs(ids), ""); err != nil {
			return "", err
		}
	}
	id, bad := p.createDraft(ctx, &job, ids)
	if bad != nil && kept && (bad.GraphError.Kind() == meta.KindOther || bad.GraphError.Kind() == meta.KindDuplicate) {
		// The photos are gone, or belong to a draft whose id was lost.
		if ids, err = p.uploadAll(ctx, job); err != nil {
			return "", err
		}
		id, bad = p.createDraft(ctx, &job, ids)
	}
	switch {
	case bad == nil:
		return draftCheckpoint + id, nil
	case bad.Class == platforms.ClassDuplicate:
		// This call does not publish anything, so the duplicate cannot be this post as published by a call
		// whose response was lost.
		e := *bad.Error
		e.Class, e.Problem, e.Remedy = platforms.ClassPermanent, msgRepetition, "change it"
		return "", &e
	default:
		return "", bad.Error
	}
}

// createDraft makes the call that creates a draft. The first URL in the text is sent as the link, so that the post has
// a link preview: Facebook does not create one for URLs in the text. If Facebook refuses the draft with the link, it is
// created without one, which is safe because a draft is invisible. Posts published in one step have no link preview,
// because Facebook has been known to publish a link post and yet return an error (nov/fb_graph#370,
// facebookarchive/php-graph-sdk#1141).
func (p *Platform) createDraft(ctx context.Context, job *platforms.Job, ids []string) (string, *meta.Failure) {
	form := postForm(&job.Content, ids)
	form.Set("published", "false")
	form.Set("unpublished_content_type", "DRAFT")
	if link := firstAddress(job.Content.Text); link != "" && len(ids) == 0 {
		form.Set("link", link)
	}
	id, bad := p.sendDraft(ctx, job, form)
	if bad != nil && form.Has("link") && bad.GraphError.Kind().OfRequest() {
		form.Del("link")
		id, bad = p.sendDraft(ctx, job, form)
	}
	return id, bad
}

func (p *Platform) sendDraft(ctx context.Context, job *platforms.Job, form url.Values) (string, *meta.Failure) {
	body, bad := p.graph.Call(ctx, client.Call{
		Action: "create", Path: p.graph.AccountPath(&job.Account, "feed"), Token: job.Account.Token.Access, Body: client.Fields(form), Timeout: callTimeout,
	}, meta.ThePost)
	if bad != nil {
		return "", bad
	}
	id := meta.CreatedID(body)
	if id == "" {
		return "", meta.NewFailure(platforms.Errorf(platforms.ClassUnknown, "Facebook accepted the post without returning its id"))
	}
	return id, nil
}

// addresses matches the URLs that get a link preview.
var addresses = regexp.MustCompile(`(?i)\bhttps?://[^\s<>"]+`)

// firstAddress returns the first URL in text, without trailing punctuation.
func firstAddress(text string) string {
	return strings.TrimRight(addresses.FindString(text), ".,;:!?'’”)]}…")
}

// publishDraft makes the prepared post visible with one call. Then it reads the post's permalink and checks that it is
// published.
func (p *Platform) publishDraft(ctx context.Context, job *platforms.Job, id string) platforms.Result {
	result := p.graph.PublishAs(ctx, client.Call{
		Action: "publish", Path: p.graph.VersionedPath("/" + url.PathEscape(id)), Token: job.Account.Token.Access,
		Body: client.Fields(url.Values{"is_published": {"true"}}), Timeout: callTimeout,
	}, func(body []byte) string { return confirmed(body, id) })
	switch result.Outcome {
	case platforms.Posted:
		p.verify(ctx, job, id, &result)
	case platforms.Refused:
		if graphErr, ok := errors.AsType[*meta.Error](result.Err.Err); ok && graphErr.Missing() {
			result.Err = &platforms.Error{Class: platforms.ClassTransient, Problem: msgDraftLost, Code: result.Err.Code, Err: graphErr}
		}
	case platforms.NotSent, platforms.Accepted, platforms.Unknown:
	}
	return result
}

// confirmed returns the post's id if a response confirms the change. According to the reference, the response is
// {"success": true}; Meta's SDKs expect the post.
func confirmed(answer []byte, id string) string {
	said, _ := jsondoc.Decode[struct {
		Success jsondoc.Flag `json:"success"`
	}](answer)
	if bool(said.Success) || meta.CreatedID(answer) == id {
		return id
	}
	return ""
}

// verify reads a post that was just published. If there is no response, it relies on Facebook's confirmation and uses
// the documented form of the address.
func (p *Platform) verify(ctx context.Context, job *platforms.Job, id string, result *platforms.Result) {
	ctx, cancel := context.WithTimeout(ctx, meta.PermalinkTimeout)
	defer cancel()
	found, there, _ := p.readDraft(ctx, job, id)
	found.ID = jsondoc.Text(id)
	result.ExternalURL = p.postURL(&found.entry)
	if there && !bool(*found.Published) {
		*result = platforms.Result{
			Outcome: platforms.Unknown, RateLimits: result.RateLimits,
			Err: platforms.Errorf(platforms.ClassUnknown, "Facebook confirmed the post but shows it as unpublished"),
		}
	}
}

// lookupDraft reads whether the prepared post is published. If Facebook does not return it, its absence is not proven,
// and the caller searches the listing.
func (p *Platform) lookupDraft(ctx context.Context, job *platforms.Job, id string) (result platforms.LookupResult, there bool, err *platforms.Error) {
	found, there, err := p.readDraft(ctx, job, id)
	switch {
	case err != nil || !there:
		return platforms.LookupResult{}, false, err
	case !bool(*found.Published):
		return platforms.LookupResult{Proof: true}, true, nil
	}
	found.ID = jsondoc.Text(id)
	return platforms.LookupResult{Matches: 1, ExternalID: id, ExternalURL: p.postURL(&found.entry), Certain: true}, true, nil
}
