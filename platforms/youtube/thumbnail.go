// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// thumbnailTries is the maximum number of attempts to set a thumbnail. Repeating the call is harmless, but delays the
// recording of the published post's outcome.
const thumbnailTries = 2

const msgNoThumbnail = "the video is online without the chosen thumbnail: %s"

var _ platforms.Finisher = (*Platform)(nil)

// Finish sets the chosen thumbnail on a video that YouTube has processed. For a Short, a thumbnail that is set earlier
// might be ignored ("Thumbnails: set", November 2026), and only YouTube decides which videos are Shorts. The call costs
// 50 quota units.
func (p *Platform) Finish(ctx context.Context, job platforms.Job, externalID string) (note string) {
	if job.Content.Thumbnail == nil || !validID(externalID) {
		return ""
	}
	if failure := p.setThumbnail(ctx, &job, externalID); failure != nil {
		return fmt.Sprintf(msgNoThumbnail, failure.Error())
	}
	return ""
}

func (p *Platform) setThumbnail(ctx context.Context, job *platforms.Job, id string) *platforms.Error {
	for try := 1; ; try++ {
		failure := p.sendThumbnail(ctx, job, id)
		if failure == nil || failure.Class != platforms.ClassTransient || try == thumbnailTries || ctx.Err() != nil {
			return failure
		}
	}
}

func (p *Platform) sendThumbnail(ctx context.Context, job *platforms.Job, id string) *platforms.Error {
	picture := job.Content.Thumbnail
	query := url.Values{"videoId": {id}, "uploadType": {"media"}}
	resp, _, failure := p.API.Upload(ctx, client.Upload{
		Call: client.Call{
			Action: "thumbnail", Path: "/upload/youtube/v3/thumbnails/set?" + query.Encode(), Token: job.Account.Token.Access, Timeout: thumbnailTimeout,
		},
		File: picture, Length: picture.Size,
	})
	if failure != nil || resp.Status == http.StatusOK {
		return failure
	}
	failure, reason := p.classifyVideo(resp)
	switch {
	case reason == codeForbidden:
		failure.Subject = platforms.SubjectAccount
		failure.Problem = "YouTube lets only channels verified by phone choose thumbnails"
		failure.Remedy = "verify the channel at youtube.com/verify and set the thumbnail in YouTube Studio"
	case failure.Class == platforms.ClassPermanent && resp.Status == http.StatusBadRequest:
		failure.Subject, failure.Problem, failure.Remedy = badPicture.Subject, badPicture.Problem, badPicture.Remedy
	}
	return failure
}
