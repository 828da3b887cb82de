// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"net/http"
	"net/url"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// thumbnailTries is how often a thumbnail is set: as often as one likes, but a
// live post waits for it to be recorded.
const thumbnailTries = 2

const msgNoThumbnail = "the video is online without the chosen thumbnail: %s"

// setThumbnail sets the picture of a video that is online.
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
	resp, _, failure := p.api.Upload(ctx, client.Upload{
		Call: client.Call{
			Action: "thumbnail", Path: "/upload/youtube/v3/thumbnails/set?" + query.Encode(), Token: job.Account.Token.Access, Timeout: thumbnailTimeout,
		},
		File: picture, Length: picture.Size,
	})
	if failure != nil || resp.Status == http.StatusOK {
		return failure
	}
	failure, reason := p.videoRefused(resp)
	switch {
	case reason == "forbidden":
		failure.Problem = "YouTube lets only channels verified by phone choose thumbnails"
		failure.Remedy = "verify the channel at youtube.com/verify and set the thumbnail in YouTube Studio"
	case failure.Class == platforms.ClassPermanent && resp.Status == http.StatusBadRequest:
		failure.Problem, failure.Remedy = "YouTube refuses the picture", "set a thumbnail in YouTube Studio"
	}
	return failure
}
