// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	// imagePause and videoPause are how long to wait at most between two
	// questions for a container that is not ready: images are ready nearly at
	// once, and Instagram advises to ask once a minute for a video.
	imagePause = 3 * time.Second
	videoPause = 15 * time.Second

	// fetchWithin is how long Instagram may take to fetch a file.
	fetchWithin = 2 * time.Hour
)

const (
	msgNoContainer = "Instagram took the post without saying under which id"
	msgNoState     = "Instagram did not say how far it is with the post"
)

// task is the preparation of one job.
type task struct {
	*Platform

	host *host
	job  platforms.Job
	// items are the containers of a carousel's images, in their order, as far
	// as they were made.
	items []string
}

func (p *Platform) task(job platforms.Job) *task {
	return &task{Platform: p, host: p.hostOf(job.Account.Token), job: job}
}

// create makes a container. about is what it shows.
func (t *task) create(ctx context.Context, form url.Values, about string) (string, *failure) {
	doc, failed := t.host.ask(ctx, meta.Call{
		Action: "create", Path: t.host.path("/" + url.PathEscape(t.job.Account.ID) + "/media"), Token: t.job.Account.Token.Access,
		Form: form, Timeout: createTimeout,
	}, about)
	if failed != nil {
		return "", failed
	}
	id := doc.Text("id")
	if !meta.ValidID(id) {
		return "", because(platforms.ClassUnknown, msgNoContainer)
	}
	return id, nil
}

// await waits until Instagram is done with a container, for as long as the
// context lasts, and returns its state and, in Instagram's words, its status.
func (t *task) await(ctx context.Context, id, about string) (found meta.State, status string, bad *failure) {
	longest := imagePause
	if t.isVideo() {
		longest = videoPause
	}
	err := meta.Await(ctx, t.config.Clock, longest, func() bool {
		found, status, bad = t.state(ctx, id)
		if bad != nil || found != meta.StateInProgress {
			return false
		}
		if t.isVideo() {
			// Whoever keeps notes may pass over those that come soon.
			bad = t.note(ctx, id)
		}
		return bad == nil
	})
	if err != nil {
		bad = because(platforms.ClassTransient, msgWait, about)
		bad.Err = err
	}
	return found, status, bad
}

// ready waits for a container that was just made. A failure says what it asks
// for.
func (t *task) ready(ctx context.Context, id, about string) *failure {
	found, status, bad := t.await(ctx, id, about)
	if bad != nil || found == meta.StateFinished {
		return bad
	}
	return t.host.ended(found, status, about)
}

// state asks for a container.
func (t *task) state(ctx context.Context, id string) (meta.State, string, *failure) {
	doc, bad := t.host.read(ctx, "status", "/"+url.PathEscape(id)+"?fields=id,status_code,status", t.job.Account.Token)
	if bad != nil {
		if bad.said.Kind() == meta.KindOther {
			return meta.StateGone, "", nil
		}
		return "", "", bad
	}
	found, known := meta.ParseState(doc.Text("status_code"))
	if !known {
		return "", "", because(platforms.ClassUnknown, msgNoState)
	}
	return found, doc.Text("status"), nil
}

func (t *task) isVideo() bool {
	return len(t.job.Content.Media) == 1 && t.job.Content.Media[0].IsVideo()
}

// image is the form of a container that shows an image, which Instagram fetches.
func image(ctx context.Context, file *platforms.File) (url.Values, *failure) {
	address, err := file.Bytes.Address(ctx, fetchWithin)
	if err != nil {
		return nil, failed(file.Unreadable(err))
	}
	return url.Values{"image_url": {address}}, nil
}

// reel is the form of a container that shows the video of the job. Instagram
// fetches it, or waits for its upload.
func (t *task) reel(ctx context.Context, upload bool) (url.Values, *failure) {
	form := url.Values{"media_type": {"REELS"}}
	if upload {
		form.Set("upload_type", "resumable")
	} else {
		file := &t.job.Content.Media[0]
		address, err := file.Bytes.Address(ctx, fetchWithin)
		if err != nil {
			return nil, failed(file.Unreadable(err))
		}
		form.Set("video_url", address)
	}
	if at := t.job.Content.ThumbnailAt; at != nil {
		form.Set("thumb_offset", strconv.FormatInt(at.Milliseconds(), 10))
	}
	t.caption(form)
	return form, nil
}

// caption adds the text of the job to what shows it.
func (t *task) caption(form url.Values) {
	if t.job.Content.Text != "" {
		form.Set("caption", t.job.Content.Text)
	}
}
