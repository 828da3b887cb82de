// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

const (
	msgUnprepared = "the video is not uploaded yet, or the address of its upload is lost; Herald uploads it again"
	msgUnasked    = "TikTok was not asked yet whether the account may post the photos; Herald asks and tries again"
	msgInDoubt    = "TikTok answered with HTTP status %d, which does not tell whether it took the post; Herald asks for it"
	msgNoID       = "TikTok took the post without saying under which id; Herald looks for it among the account's posts"
)

// Publish makes the one call that posts: the last chunk of a video, or the call
// that has TikTok fetch photos.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	if isVideo(&job.Content) {
		return p.publishVideo(ctx, job)
	}
	return p.publishPhotos(ctx, job)
}

// publishVideo sends the last chunk.
func (p *Platform) publishVideo(ctx context.Context, job platforms.Job) platforms.Result {
	file := &job.Content.Media[0]
	known, cut, ok := readSession(job.Secret, file.Size)
	switch {
	case !ok || !validTicket(job.Checkpoint):
		return unsent(platforms.Errorf(platforms.ClassTransient, msgUnprepared))
	case !p.config.Clock.Now().Before(known.Ends):
		return unsent(platforms.Errorf(platforms.ClassTransient, msgEnded, file.Name))
	}
	resp, sent, failure := p.put(ctx, file, known.Address, max(known.From, cut.last()), file.Size, transport.Call{Action: "publish", Timeout: publishTimeout})
	switch {
	case failure != nil && !sent:
		return unsent(failure)
	case failure != nil:
		return inDoubt(&platforms.Error{Class: platforms.ClassUnknown, Problem: failure.Problem, Remedy: failure.Remedy, Err: failure.Err})
	case resp.Status == http.StatusCreated:
		return p.outcome(ctx, job, job.Checkpoint)
	case uploadRefuses(resp.Status):
		return p.doubleCheck(ctx, job, resp)
	default:
		return inDoubt(doubtful(resp.Status))
	}
}

// uploadRefuses tells whether the host of uploads refuses with a status.
func uploadRefuses(status int) bool {
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusRequestedRangeNotSatisfiable, http.StatusTooManyRequests,
	}, status)
}

// doubleCheck asks the ticket whether a refusal holds: TikTok also refuses bytes
// that it has already.
func (p *Platform) doubleCheck(ctx context.Context, job platforms.Job, resp *transport.Response) platforms.Result {
	file := &job.Content.Media[0]
	found, bad := p.fetchStatus(ctx, job.Account.Token, job.Checkpoint)
	switch {
	case bad == nil && found.partial(file.Size):
		return platforms.Result{Outcome: platforms.Refused, Err: p.uploadRefused(file, resp.Status)}
	case bad == nil && found.final():
		return p.outcome(ctx, job, job.Checkpoint)
	default:
		return inDoubt(doubtful(resp.Status))
	}
}

// publishPhotos has TikTok fetch the photos and post them.
func (p *Platform) publishPhotos(ctx context.Context, job platforms.Job) platforms.Result {
	who, ok := creatorOf(job.Checkpoint)
	if !ok && p.Prepares(job.Content) {
		return unsent(platforms.Errorf(platforms.ClassTransient, msgUnasked))
	}
	body, failure := newPhotoInit(ctx, &job.Content, who)
	if failure != nil {
		return unsent(failure)
	}
	said, err := p.post(ctx, "publish", "/v2/post/publish/content/init/", job.Account.Token, body, publishTimeout)
	switch {
	case err != nil && !wasSent(err):
		return unsent(unanswered(err))
	case err != nil:
		return inDoubt(&platforms.Error{Class: platforms.ClassUnknown, Problem: msgLost, Err: err})
	case !said.ok():
		bad := p.classify(said)
		if !bad.documented {
			return inDoubt(&platforms.Error{Class: platforms.ClassUnknown, Problem: fmt.Sprintf(msgInDoubt, said.status), Err: bad.Err})
		}
		return platforms.Result{Outcome: platforms.Refused, Err: bad.Error}
	}
	id := said.data.Text("publish_id")
	if !validTicket(id) {
		return inDoubt(platforms.Errorf(platforms.ClassUnknown, msgNoID))
	}
	// Nothing but this answer tells the ticket: it is stored before anything
	// else happens.
	return atWork(id, msgProcessing)
}

// atWork is the result of a call that TikTok took and has not done with, or has
// not told the id of yet.
func atWork(id, message string) platforms.Result {
	return platforms.Result{Outcome: platforms.Accepted, OperationID: id, Err: platforms.Errorf(platforms.ClassTransient, "%s", message)}
}

// outcome is what comes of a video whose last chunk TikTok took, under a ticket
// that is stored.
func (p *Platform) outcome(ctx context.Context, job platforms.Job, id string) platforms.Result {
	found, bad := p.await(ctx, job, id)
	switch {
	case bad != nil:
		return platforms.Result{Outcome: platforms.Accepted, OperationID: id, Err: bad.Error}
	case found.state == stateFailed:
		return platforms.Result{Outcome: platforms.Refused, Err: failedOf(found.reason)}
	case !found.final():
		return atWork(id, msgProcessing)
	case !found.settled(&job.Content):
		return atWork(id, msgModerated)
	}
	result := platforms.Result{Outcome: platforms.Posted}
	result.ExternalID, result.ExternalURL = p.published(job, id, found)
	return result
}

// unsent is the result if nothing was sent: what is wrong with the content or
// its files is no better the next time.
func unsent(failure *platforms.Error) platforms.Result {
	if failure.Class == platforms.ClassPermanent {
		return platforms.Result{Outcome: platforms.Refused, Err: failure}
	}
	return platforms.Result{Outcome: platforms.NotSent, Err: failure}
}

func inDoubt(failure *platforms.Error) platforms.Result {
	return platforms.Result{Outcome: platforms.Unknown, Err: failure}
}

func doubtful(status int) *platforms.Error {
	return platforms.Errorf(platforms.ClassUnknown, msgInDoubt, status)
}
