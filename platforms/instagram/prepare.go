// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// imagePause and videoPause are the longest pauses between polls of a container. Images are ready almost immediately,
// and Instagram recommends polling a video once a minute.
const (
	imagePause = 3 * time.Second
	videoPause = 15 * time.Second
)

// partUpload is the prefix of a checkpoint whose container is still waiting for the video's bytes. A complete
// checkpoint is the container's id. The checkpoint of an incomplete carousel lists the containers created so far.
const partUpload = "upload:"

// Prepares returns true: every post is published from a container.
func (*Platform) Prepares(platforms.Content) bool { return true }

type task struct {
	*meta.Task

	platform *Platform
	host     *host
}

// Prepare creates a container, or reuses one or its parts, and waits until Instagram has processed it.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	media := job.Content.Media
	if len(media) == 0 {
		return "", platforms.Errorf(platforms.ClassPermanent, "Instagram does not accept posts without an image or a video").Advise("add one")
	}
	h := p.hostOf(job.Account.Token)
	t := &task{Task: h.NewTask(job, imagePause), platform: p, host: h}
	fresh := t.images
	if len(media) == 1 && media[0].IsVideo() {
		t.LongestPause, t.SaveWhileWaiting = videoPause, true
		fresh = t.video
	}
	earlier, bad := t.uploaded(ctx)
	if bad != nil {
		return "", bad.Error
	}
	return t.Prepare(ctx, earlier, fresh)
}

// uploaded completes an earlier preparation's upload and returns its container, or "" if there is none.
func (t *task) uploaded(ctx context.Context) (string, *meta.Failure) {
	id, isPart := strings.CutPrefix(t.Job.Checkpoint, partUpload)
	if !isPart || !t.SaveWhileWaiting || !meta.ValidID(id) {
		return t.Job.Checkpoint, nil
	}
	found, _, bad := t.State(ctx, &t.Job, id)
	if bad == nil && found == meta.StateInProgress {
		bad = t.fill(ctx, id)
	}
	switch {
	case bad == nil:
		return id, nil
	case bad.Retryable:
		return "", nil
	default:
		return "", bad
	}
}

// images creates a container for an image, or a carousel container for several images, and waits until it is ready.
func (t *task) images(ctx context.Context) (id string, bad *meta.Failure) {
	media, about := t.Job.Content.Media, meta.ThePost
	var form url.Values
	if len(media) == 1 {
		about = meta.TheFile(&media[0])
		form, bad = showing(ctx, &media[0])
	} else {
		form, bad = t.Carousel(ctx, showing)
	}
	if bad != nil {
		return "", bad
	}
	t.caption(form)
	if id, bad = t.Create(ctx, form, about); bad == nil {
		bad = t.WaitReady(ctx, id, about)
	}
	return id, bad
}

// video creates a reel's container. With Facebook's login the video is uploaded; Instagram's login does not support
// uploads.
func (t *task) video(ctx context.Context) (string, *meta.Failure) {
	upload := t.host.login == FacebookLogin
	form, bad := t.reel(ctx, upload)
	if bad != nil {
		return "", bad
	}
	about := meta.TheFile(&t.Job.Content.Media[0])
	id, bad := t.Create(ctx, form, about)
	if bad != nil {
		return "", bad
	}
	if upload {
		if bad := t.SaveCheckpoint(ctx, partUpload+id); bad != nil {
			return "", bad
		}
		if bad := t.fill(ctx, id); bad != nil {
			return "", bad
		}
	}
	if bad := t.SaveCheckpoint(ctx, id); bad != nil {
		return "", bad
	}
	return id, t.WaitReady(ctx, id, about)
}

// showing returns the form values for creating a container for an image, which Instagram downloads from the file's URL.
func showing(ctx context.Context, file *platforms.File) (url.Values, *meta.Failure) {
	address, bad := meta.FileURL(ctx, file)
	form := url.Values{"image_url": {address}}
	if file.AltText != "" {
		form.Set("alt_text", file.AltText)
	}
	return form, bad
}

// reel returns the form for the container of the job's video. Instagram downloads the video, or waits for its upload.
func (t *task) reel(ctx context.Context, upload bool) (url.Values, *meta.Failure) {
	form := url.Values{"media_type": {"REELS"}}
	if upload {
		form.Set("upload_type", "resumable")
	} else {
		address, bad := meta.FileURL(ctx, &t.Job.Content.Media[0])
		if bad != nil {
			return nil, bad
		}
		form.Set("video_url", address)
	}
	if at := t.Job.Content.ThumbnailAt; at != nil {
		form.Set("thumb_offset", strconv.FormatInt(at.Milliseconds(), 10))
	}
	t.caption(form)
	return form, nil
}

func (t *task) caption(form url.Values) {
	if t.Job.Content.Text != "" {
		form.Set("caption", t.Job.Content.Text)
	}
}
