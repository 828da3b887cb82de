// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"net/url"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// longestPause is the longest pause between polls of a container.
const longestPause = 3 * time.Second

// Prepares returns true: every post is published from a container.
func (*Platform) Prepares(platforms.Content) bool { return true }

// Prepare creates a container for the job and waits until Threads has processed it. It reuses an earlier container for
// the same content, or the parts of one: Threads may take longer to process a video than one preparation lasts.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	t := p.graph.NewTask(job, longestPause)
	return t.Prepare(ctx, job.Checkpoint, func(ctx context.Context) (string, *meta.Failure) { return create(ctx, t) })
}

// create creates a container. For several files, it creates one for each, unless the task already has it, and a
// carousel container for all of them.
func create(ctx context.Context, t *meta.Task) (string, *meta.Failure) {
	media := t.Job.Content.Media
	form, bad := url.Values{"media_type": {"TEXT"}}, (*meta.Failure)(nil)
	switch {
	case len(media) == 1:
		form, bad = showing(ctx, &media[0])
	case len(media) > 1:
		form, bad = t.Carousel(ctx, showing)
	}
	if bad != nil {
		return "", bad
	}
	if t.Job.Content.Text != "" {
		form.Set("text", t.Job.Content.Text)
	}
	if t.Job.Content.InReplyTo != "" {
		form.Set("reply_to_id", t.Job.Content.InReplyTo)
	}
	id, bad := t.Create(ctx, form, meta.ThePost)
	if bad != nil {
		return "", bad
	}
	if len(media) > 0 {
		if bad := t.SaveCheckpoint(ctx, id); bad != nil {
			return "", bad
		}
	}
	if bad := t.WaitReady(ctx, id, meta.ThePost); bad != nil {
		// The parts themselves may be at fault.
		t.Items = nil
		return "", bad
	}
	return id, nil
}

// showing returns the form values for creating a container for a file, which Threads downloads from the file's URL.
func showing(ctx context.Context, file *platforms.File) (url.Values, *meta.Failure) {
	address, bad := meta.FileURL(ctx, file)
	if bad != nil {
		return nil, bad
	}
	form := url.Values{"media_type": {"IMAGE"}, "image_url": {address}}
	if file.IsVideo() {
		form = url.Values{"media_type": {"VIDEO"}, "video_url": {address}}
	}
	if file.AltText != "" {
		form.Set("alt_text", file.AltText)
	}
	return form, nil
}
