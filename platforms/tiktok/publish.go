// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"net/http"
	"slices"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	msgUnprepared = "the video is not uploaded yet, or its upload URL is lost"
	msgUnasked    = "Herald has not yet asked TikTok whether the account may post the photos"
)

// Publish makes the one call that creates the post: sending the last chunk of a video, or the URLs of photos.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	if isVideo(&job.Content) {
		return p.publishVideo(ctx, job)
	}
	return p.publishPhotos(ctx, job)
}

func (p *Platform) publishVideo(ctx context.Context, job platforms.Job) platforms.Result {
	file := &job.Content.Media[0]
	known, cut, ok := p.readSession(job.Secret, file.Size)
	switch {
	case !ok || !validTicket(job.Checkpoint):
		return unsent(platforms.Errorf(platforms.ClassTransient, msgUnprepared))
	case !p.Clock.Now().Before(known.Ends):
		return unsent(platforms.Errorf(platforms.ClassTransient, msgEnded, file.Name))
	}
	resp, sent, failure := p.put(ctx, file, known.Address, max(known.From, cut.last()), file.Size, client.Call{Action: "publish", Timeout: publishTimeout})
	switch {
	case failure != nil && !sent:
		return unsent(failure)
	case failure != nil:
		failure.Class = platforms.ClassUnknown
		return platforms.Result{Outcome: platforms.Unknown, Err: failure}
	case resp.Status == http.StatusCreated:
		return p.pollOutcome(ctx, job, job.Checkpoint)
	case isUploadRefusal(resp.Status):
		return p.doubleCheck(ctx, job, resp)
	default:
		return p.API.UploadInDoubt(statusOfUpload(resp.Status))
	}
}

func isUploadRefusal(status int) bool {
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusRequestedRangeNotSatisfiable, http.StatusTooManyRequests,
	}, status)
}

// doubleCheck reads the ticket's status to verify a refusal, because TikTok also refuses bytes that it already has.
func (p *Platform) doubleCheck(ctx context.Context, job platforms.Job, resp *transport.Response) platforms.Result {
	file := &job.Content.Media[0]
	found, bad := p.fetchStatus(ctx, job.Account.Token, job.Checkpoint)
	switch {
	case bad == nil && found.partial(file.Size):
		known, _, ok := p.readSession(job.Secret, file.Size)
		if addressEnded(resp.Status) || resp.Status == http.StatusBadRequest && (!ok || known.From == 0) {
			// This excludes calls that did not start at the beginning of a chunk, because they may have
			// been refused for that reason.
			p.lost.Add(job.Checkpoint, true)
		}
		return platforms.Result{Outcome: platforms.Refused, Err: p.uploadRefused(file, resp.Status)}
	case bad == nil && found.final():
		return p.pollOutcome(ctx, job, job.Checkpoint)
	default:
		return p.API.UploadInDoubt(statusOfUpload(resp.Status))
	}
}

func (p *Platform) publishPhotos(ctx context.Context, job platforms.Job) platforms.Result {
	who, ok := creatorOf(job.Checkpoint)
	if !ok && p.Prepares(job.Content) {
		return unsent(platforms.Errorf(platforms.ClassTransient, msgUnasked))
	}
	body, failure := newPhotoInit(ctx, &job.Content, who)
	if failure != nil {
		return unsent(failure)
	}
	answer, err := postJSON[struct {
		PublishID jsondoc.Text `json:"publish_id"`
	}](ctx, p, "publish", "/v2/post/publish/content/init/", job.Account.Token, body, publishTimeout)
	switch {
	case err != nil:
		return p.API.PublishUnanswered(err)
	case !answer.ok():
		bad := p.classify(answer.apiError())
		if !bad.documented {
			return p.API.InDoubt(answer.status, bad.Err)
		}
		return platforms.Result{Outcome: platforms.Refused, Err: bad.Error}
	}
	id := answer.Data.PublishID.String()
	if !validTicket(id) {
		return p.API.NoID()
	}
	// Only this response contains the ticket, so it is stored before anything else happens.
	return acceptedResult(id, msgProcessing)
}

// acceptedResult returns the result of a call that TikTok is still processing, or whose post has no known public id
// yet.
func acceptedResult(id, message string) platforms.Result {
	return platforms.Result{Outcome: platforms.Accepted, OperationID: id, Err: platforms.Errorf(platforms.ClassTransient, "%s", message)}
}

// pollOutcome returns the result for a video whose last chunk TikTok accepted. Its ticket is already stored.
func (p *Platform) pollOutcome(ctx context.Context, job platforms.Job, id string) platforms.Result {
	found, bad := p.pollStatus(ctx, job, id)
	switch {
	case bad != nil:
		return platforms.Result{Outcome: platforms.Accepted, OperationID: id, Err: bad.Error}
	case found.state == stateFailed:
		return platforms.Result{Outcome: platforms.Refused, Err: failedOf(found.reason)}
	case !found.final():
		return acceptedResult(id, msgProcessing)
	case !found.settled(&job.Content):
		return acceptedResult(id, msgModerated)
	}
	result := platforms.Result{Outcome: platforms.Posted}
	result.ExternalID, result.ExternalURL = p.publishedPost(job, id, found)
	return result
}

// unsent returns the result if nothing was sent. A permanent failure is caused by the content or its files and counts
// as a refusal, because a retry would not help.
func unsent(failure *platforms.Error) platforms.Result {
	if failure.Class == platforms.ClassPermanent {
		return platforms.Result{Outcome: platforms.Refused, Unpublished: true, Err: failure}
	}
	return platforms.Result{Outcome: platforms.NotSent, Err: failure}
}
