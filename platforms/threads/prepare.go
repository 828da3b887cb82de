// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"net/url"
	"regexp"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// longestPause is how long to wait between two questions for a container that is
// not ready.
const longestPause = 3 * time.Second

// Prepares says that everything is published from a container.
func (*Platform) Prepares(platforms.Content) bool { return true }

// Prepare makes a container for the job and waits until Threads is done with it.
// One that was made before for the same content is used again, and so are the
// parts of one: with a video Threads may take longer than one preparation lasts.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	t := p.graph.NewTask(job, longestPause)
	return t.Prepare(ctx, job.Checkpoint, func(ctx context.Context) (string, *meta.Failure) { return create(ctx, t) })
}

// create makes a container: of several files, one for each, as far as the task
// does not name them, and one around them.
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
		if bad := t.Note(ctx, id); bad != nil {
			return "", bad
		}
	}
	if bad := t.Ready(ctx, id, meta.ThePost); bad != nil {
		// Its parts may be at fault.
		t.Items = nil
		return "", bad
	}
	return id, nil
}

// showing is the form of a container that shows a file, which Threads fetches.
func showing(ctx context.Context, file *platforms.File) (url.Values, *meta.Failure) {
	address, bad := meta.Address(ctx, file)
	switch {
	case bad != nil:
		return nil, bad
	case file.IsVideo():
		return url.Values{"media_type": {"VIDEO"}, "video_url": {address}}, nil
	default:
		return url.Values{"media_type": {"IMAGE"}, "image_url": {address}}, nil
	}
}

// failureWord is the form of the documented words for why a container failed.
var failureWord = regexp.MustCompile(`^[A-Z][A-Z_]{2,40}$`)

// word returns a documented word as it is, and nothing else that Threads says.
func word(s string) string {
	if failureWord.MatchString(s) {
		return s
	}
	return "UNKNOWN"
}

// failedDownload is why a container failed whose video did not arrive (Threads API, "Troubleshooting").
const failedDownload = "FAILED_DOWNLOADING_VIDEO"

// ended says that a container failed. Another one may do for a post, but not for
// one file of it.
func ended(g *meta.Graph, _ meta.State, why, about string) *meta.Failure {
	if why == failedDownload {
		return g.Mean(meta.Meaning{Error: notFetched, Again: true, Pause: fetchPause}, new(meta.Error), about)
	}
	bad := meta.Failed(platforms.Errorf(platforms.ClassPermanent,
		"Threads could not prepare %s (%s)", about, word(why)).Advise("change it, or try again later"))
	bad.Again = about == meta.ThePost
	return bad
}
