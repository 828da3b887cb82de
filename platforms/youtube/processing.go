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
	// firstPause is how long Publish waits before it asks once what became of a video.
	// YouTube takes seconds for the shortest ones and minutes for most, which Lookup
	// waits for: the account's turn is not held that long.
	firstPause = 500 * time.Millisecond

	// unseenFor is how long a video may be missing from videos.list before it counts
	// as deleted. YouTube promises nothing about it; the list of a channel's uploads
	// may lag by minutes.
	unseenFor = 15 * time.Minute

	// missingFor is how long after that a video is missing in every answer before it counts
	// as deleted: one empty answer may be a fault of YouTube's.
	missingFor = 3 * time.Minute
	// mostMissing is how many missing videos are remembered.
	mostMissing = 1000

	// processingFor is how long a video is asked about. After that it counts as posted,
	// with a note: YouTube has it, and has not refused it. A video of the greatest
	// length, 12 hours, takes about as long.
	processingFor = 12 * time.Hour

	// paceShare is the part of a video's age that passes between two looks at it. The
	// caller looks after pauses that double and end at 5 minutes; this makes them longer
	// from the 20th minute on. So a video that takes an hour costs 19 of the 10,000 units
	// of a day that a Google project has ("Quota Calculator": 1 for videos.list), and one
	// that takes 12 hours 30.
	paceShare = 4
)

const (
	msgProcessing = "YouTube has the whole video and is processing it"
	msgUnseen     = "YouTube has the whole video and does not show it yet"
	msgSlow       = "YouTube has the whole video and has not finished processing it within %d hours; look at it in YouTube Studio"
	msgUnsaid     = "YouTube did not say what became of the video"
	msgFound      = "YouTube shows a video that fits, and is processing it"
)

// stage is how far YouTube is with a video that it has whole.
type stage int

const (
	// processing: neither way is decided.
	processing stage = iota
	// online: people can watch it.
	online
	// dropped: YouTube refused it, or it was deleted.
	dropped
	// unseen: YouTube does not show it, and need not yet.
	unseen
)

// progress is what YouTube says of a video.
type progress struct {
	stage stage
	video video
	// why is the reason for which a video is dropped.
	why *platforms.Error
}

// progressOf reads a video by its id (videos.list, 1 unit of the quota).
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
	if !job.AcceptedAt.IsZero() && p.clock.Since(job.AcceptedAt) > unseenFor && p.missingSince(id) >= missingFor {
		return progress{stage: dropped, why: droppedFor(codeDeleted)}, nil
	}
	return progress{stage: unseen}, nil
}

// missingSince returns for how long videos.list has not shown a video that it was to show,
// now for the first time or not.
func (p *Platform) missingSince(id string) time.Duration {
	now := p.clock.Now()
	since, known := p.missing.Get(id)
	if !known {
		p.missing.Add(id, now)
		return 0
	}
	return now.Sub(since.(time.Time)) //nolint:forcetypeassert // only times are entered
}

// What is read of a video. The details of its processing are for its owner alone
// ("Videos: list", error forbidden); the status says the same later.
const (
	publicParts = "snippet,status"
	allParts    = publicParts + ",processingDetails"
)

// videoList is an answer of videos.list.
type videoList struct {
	Kind  jsondoc.Text `json:"kind"`
	Items []video      `json:"items"`
}

// list reads parts of a video by its id.
func (p *Platform) list(ctx context.Context, job *platforms.Job, id, parts string) (videoList, *platforms.Error) {
	query := url.Values{"part": {parts}, "id": {id}}
	return get[videoList](ctx, p, "status", "/youtube/v3/videos?"+query.Encode(), job.Account.Token, p.classify)
}

// progress reads how far a video is (resource "videos": status.uploadStatus and
// processingDetails.processingStatus). It is online once both say so; a status that
// YouTube does not document decides nothing.
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

// resolvePublished decides what comes of a video that the last part completed. Its id is known
// and not stored: it goes out with the result in any case.
func (p *Platform) resolvePublished(ctx context.Context, job *platforms.Job, made *video) platforms.Result {
	id := made.ID.String()
	accepted := platforms.Result{Outcome: platforms.Accepted, OperationID: id, Err: platforms.Errorf(platforms.ClassTransient, msgProcessing)}
	asking, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if client.Wait(asking, p.clock, firstPause) != nil {
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

// lookupVideo is what a look at a video of the job tells. known says that the caller has
// the id of the video already.
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
	wait.RetryAt = p.clock.Now().Add(age / paceShare)
	return platforms.LookupResult{}, wait
}

// age is how long YouTube has had the video of a job.
func (p *Platform) age(job *platforms.Job) time.Duration {
	if job.AcceptedAt.IsZero() {
		return 0
	}
	return max(p.clock.Since(job.AcceptedAt), 0)
}

// certain is the answer about a video that YouTube named for the job.
func certain(r platforms.Result) platforms.LookupResult {
	return platforms.LookupResult{Matches: 1, ExternalID: r.ExternalID, ExternalURL: r.ExternalURL, PostedAt: r.PostedAt, Note: r.Note, Certain: true}
}

// listed decides about the one video of the channel that fits a job. Absence from the
// listing proves nothing, so that what is still processed is asked about again.
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

// join puts notes into one.
func join(first, second string) string {
	if first == "" || second == "" {
		return cmp.Or(first, second)
	}
	return first + "; " + second
}
