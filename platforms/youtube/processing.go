// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// firstPause is how long Publish waits before its only status call. YouTube processes the shortest videos in
	// seconds, but most take minutes. Those are left to Lookup, so the account's gate is not held that long.
	firstPause = 500 * time.Millisecond

	// unseenFor is how long a video may be missing from videos.list before it counts as deleted. YouTube does not
	// document a lag; the list of a channel's uploads may lag by minutes.
	unseenFor = 15 * time.Minute

	// missingFor is how long after that a video must be missing from every response to count as deleted: a single empty
	// response may be an error on YouTube's side.
	missingFor = 3 * time.Minute
	// maxMissing is the capacity of the cache of missing videos.
	maxMissing = 1000

	// processingFor is how long a video's processing is polled. After that, it counts as posted, with a note,
	// because YouTube has received it and has not rejected it. A video of the maximum duration, 12 hours, takes
	// about as long.
	processingFor = 12 * time.Hour

	// paceShare is the divisor for the pause between two status calls: a quarter of the video's age. The caller's
	// own pauses double up to 5 minutes, so this makes a difference from the 20th minute onward. A video that takes
	// an hour then uses 19 of a Google project's 10,000 daily units ("Quota Calculator": 1 for videos.list), and
	// one that takes 12 hours uses 30.
	paceShare = 4
)

const (
	msgProcessing = "YouTube has the whole video and is processing it"
	msgUnseen     = "YouTube has the whole video and does not show it yet"
	msgSlow       = "YouTube has the whole video and has not finished processing it within %d hours; check it in YouTube Studio"
	msgUnsaid     = "YouTube did not return the outcome for the video"
	msgFound      = "YouTube lists a matching video and is processing it"
)

// stage is the state of a completely uploaded video on YouTube.
type stage int

const (
	// processing: the outcome is open.
	processing stage = iota
	// online: the video is public.
	online
	// dropped: YouTube rejected it, or it was deleted.
	dropped
	// unseen: YouTube does not return it, which may be due to a lag.
	unseen
)

type progress struct {
	stage stage
	video video
	why   *platforms.Error
}

// progressOf reads a video by its id (videos.list, 1 quota unit).
func (p *Platform) progressOf(ctx context.Context, job *platforms.Job, id string) (progress, *platforms.Error) {
	list, failure := p.list(ctx, job, id, allParts)
	if failure != nil && failure.Code == codeForbidden {
		list, failure = p.list(ctx, job, id, publicParts)
	}
	switch {
	case failure != nil:
		return progress{}, failure
	case list.Items == nil && list.Kind == "":
		return progress{}, platforms.Errorf(platforms.ClassUnknown, msgUnsaid)
	}
	for i := range list.Items {
		if found := &list.Items[i]; found.ID.String() == id {
			p.missing.Remove(id)
			return found.progress(), nil
		}
	}
	if len(list.Items) > 0 {
		return progress{}, platforms.Errorf(platforms.ClassUnknown, msgUnsaid)
	}
	if !job.AcceptedAt.IsZero() && p.Clock.Since(job.AcceptedAt) > unseenFor && p.missingSince(id) >= missingFor {
		return progress{stage: dropped, why: droppedFor(codeDeleted)}, nil
	}
	return progress{stage: unseen}, nil
}

// missingSince records that videos.list does not return a video that it should, and returns the time since that was
// first recorded.
func (p *Platform) missingSince(id string) time.Duration {
	now := p.Clock.Now()
	since, known := p.missing.Get(id)
	if !known {
		p.missing.Add(id, now)
		return 0
	}
	return now.Sub(since.(time.Time)) //nolint:forcetypeassert // all entries are times
}

// The parts of a video that are requested. The processing details are visible only to the video's owner ("Videos:
// list", error forbidden); the status shows the same result later.
const (
	publicParts = "snippet,status"
	allParts    = publicParts + ",processingDetails"
)

type videoList struct {
	Kind  jsondoc.Text `json:"kind"`
	Items []video      `json:"items"`
}

func (p *Platform) list(ctx context.Context, job *platforms.Job, id, parts string) (videoList, *platforms.Error) {
	query := url.Values{"part": {parts}, "id": {id}}
	return get[videoList](ctx, p, "status", "/youtube/v3/videos?"+query.Encode(), job.Account.Token, p.classify)
}

// progress returns a video's state (resource "videos": status.uploadStatus and processingDetails.processingStatus). It
// is online if both statuses confirm it; an undocumented upload status counts as processing.
func (v *video) progress() progress {
	out := progress{stage: processing, video: *v}
	switch upload, work := v.Status.Upload.String(), v.Processing.Status.String(); {
	case upload == "rejected":
		out.stage, out.why = dropped, droppedFor("rejected/"+v.Status.Rejection.String())
	case upload == "failed":
		out.stage, out.why = dropped, droppedFor("failed/"+v.Status.Failure.String())
	case upload == "deleted":
		out.stage, out.why = dropped, droppedFor(codeDeleted)
	case work == "failed":
		out.stage, out.why = dropped, droppedFor("failed/"+v.Processing.Failure.String())
	case upload == "processed" && work != "processing":
		out.stage = online
	}
	return out
}

// resolvePublished returns the result for a video that the last part completed. The video's id is not stored yet, so
// the result contains it, unless YouTube rejected the video.
func (p *Platform) resolvePublished(ctx context.Context, job *platforms.Job, created *video) platforms.Result {
	id := created.ID.String()
	accepted := platforms.Result{Outcome: platforms.Accepted, OperationID: id, Err: platforms.Errorf(platforms.ClassTransient, msgProcessing)}
	asking, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if client.Wait(asking, p.Clock, firstPause) != nil {
		return accepted
	}
	found, failure := p.progressOf(asking, job, id)
	switch {
	case failure != nil:
		return accepted
	case found.stage == dropped:
		return platforms.Result{Outcome: platforms.Refused, Err: found.why}
	case found.stage != online:
		return accepted
	}
	result := p.posted(&found.video)
	result.Note = join(result.Note, p.Finish(ctx, *job, id))
	return result
}

// lookupVideo returns the lookup result for the job's video. known reports whether the caller already has the video's
// id.
func (p *Platform) lookupVideo(ctx context.Context, job *platforms.Job, id string, known bool) (platforms.LookupResult, error) {
	found, failure := p.progressOf(ctx, job, id)
	age := p.age(job)
	switch {
	case failure == nil && found.stage == online:
		return certain(p.posted(&found.video)), nil
	case failure == nil && found.stage == dropped:
		return platforms.LookupResult{Refused: found.why}, nil
	case !known:
		return platforms.LookupResult{OperationID: id}, nil
	case failure != nil:
		return platforms.LookupResult{}, failure
	case found.stage == processing && age > processingFor:
		result := p.posted(&found.video)
		result.Note = join(result.Note, fmt.Sprintf(msgSlow, int(processingFor.Hours())))
		return certain(result), nil
	}
	message := msgProcessing
	if found.stage == unseen {
		message = msgUnseen
	}
	wait := platforms.Errorf(platforms.ClassTransient, "%s", message)
	wait.RetryAt = p.Clock.Now().Add(age / paceShare)
	return platforms.LookupResult{}, wait
}

// age returns how long ago YouTube accepted the job's video.
func (p *Platform) age(job *platforms.Job) time.Duration {
	if job.AcceptedAt.IsZero() {
		return 0
	}
	return max(p.Clock.Since(job.AcceptedAt), 0)
}

// certain converts the result for a video that certainly belongs to the job.
func certain(r platforms.Result) platforms.LookupResult {
	return platforms.LookupResult{Matches: 1, ExternalID: r.ExternalID, ExternalURL: r.ExternalURL, PostedAt: r.PostedAt, Note: r.Note, Certain: true}
}

// listed returns the lookup result for the one video on the channel that matches a job. The listing cannot prove
// absence, so a video that is still being processed is looked up again.
func (p *Platform) listed(ctx context.Context, job *platforms.Job, match platforms.LookupResult) (platforms.LookupResult, error) {
	found, failure := p.progressOf(ctx, job, match.ExternalID)
	switch {
	case failure != nil:
		return platforms.LookupResult{}, failure
	case found.stage == dropped:
		return platforms.LookupResult{Refused: found.why}, nil
	case found.stage != online:
		return platforms.LookupResult{}, platforms.Errorf(platforms.ClassUnknown, msgFound)
	}
	match.Note = p.posted(&found.video).Note
	return match, nil
}

func join(first, second string) string {
	if first == "" || second == "" {
		return cmp.Or(first, second)
	}
	return first + "; " + second
}
