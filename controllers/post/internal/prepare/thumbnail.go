// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/thumbnail"
	"github.com/herald-social/herald/platforms"
)

// Thumbnails takes pictures out of videos; see thumbnail.Maker.
type Thumbnails interface {
	// Find returns the picture at a moment of a video. The error is the
	// *thumbnail.Problem for which it could not be made, or store.ErrNotFound.
	Find(ctx context.Context, source rendition.Source, at time.Duration) (rendition.Rendition, error)
	// Make returns the picture at a moment of a video, and makes it if there is
	// none.
	Make(ctx context.Context, source rendition.Source, at time.Duration) (rendition.Rendition, error)
	// Forget has Find look for a picture anew.
	Forget(r rendition.Rendition)
}

const (
	// thumbnailTimeout is how long a preparation waits for its thumbnail: as
	// long for others to have theirs as for its own.
	thumbnailTimeout = 2 * time.Minute
	// thumbnailLookupTimeout is how long a publication waits for word of one.
	thumbnailLookupTimeout = 2 * time.Second
)

// usesThumbnail reports whether a moment of the video was chosen as thumbnail of
// which the platform wants a picture.
func usesThumbnail(capabilities platforms.Capabilities, c *platforms.Content) bool {
	return capabilities.TakesThumbnail && c.ThumbnailAt != nil && len(c.Media) == 1 && c.Media[0].IsVideo()
}

// moment says of which file, and when in it, a picture is wanted. Beyond the end
// every moment is the last.
func moment(c *platforms.Content) (source rendition.Source, at time.Duration) {
	file := &c.Media[0]
	at = *c.ThumbnailAt
	if file.Duration > 0 {
		at = min(at, file.Duration)
	}
	original, _ := file.Bytes.(stored)
	return rendition.Source{Key: original.key, ETag: file.ETag, MIMEType: string(file.MIMEType), Size: file.Size}, at
}

// ensureThumbnail has the picture made, if one is wanted. A video goes out
// without one as well.
func (c converter) ensureThumbnail(ctx context.Context, content *platforms.Content) {
	if c.thumbnails == nil || !usesThumbnail(c.to.Capabilities(), content) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, thumbnailTimeout)
	defer cancel()
	source, at := moment(content)
	if _, err := c.thumbnails.Make(ctx, source, at); err != nil {
		log.FromContext(ctx).Info("no thumbnail", "file", content.Media[0].Name, "at", at.String(), "problem", err.Error(), "cause", errors.Unwrap(err))
	}
}

// addThumbnail hands out the picture that was made.
func (c converter) addThumbnail(ctx context.Context, content *platforms.Content) {
	if c.thumbnails == nil || !usesThumbnail(c.to.Capabilities(), content) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, thumbnailLookupTimeout)
	defer cancel()
	source, at := moment(content)
	r, err := c.thumbnails.Find(ctx, source, at)
	if err != nil {
		return // The report of the publication says so.
	}
	content.Thumbnail = &platforms.File{
		Name: content.Media[0].Name, MIMEType: v1alpha1.MimeType(r.MIMEType), Size: r.Size, Width: r.Width, Height: r.Height, ETag: r.ETag,
		Bytes: converted{files: c.files, rendition: r, forget: c.thumbnails.Forget, sent: &sent{}},
	}
}

// AddThumbnail puts the picture of the chosen moment into the content of a video that
// is online already.
func (p *Preparer) AddThumbnail(ctx context.Context, to platforms.Publisher, content *platforms.Content) {
	converter{to: to, files: p.o.Files, thumbnails: p.o.Thumbnails}.addThumbnail(ctx, content)
}

// Reasons why a video is online without its thumbnail.
const (
	whyNoProgram  = "the manager has no ffmpeg to take it out of the video (install ffmpeg, or name it in thumbnails.ffmpeg of the manager's configuration)"
	whyNotThere   = "its picture could not be made, or read in the media store, in time"
	whyLostAnswer = "the answer to the upload was lost, and the video was found by its words alone, which may be another's"
)

// WithoutThumbnail says why the video of a target is online without the thumbnail
// that was chosen; "" if it has it, or none was chosen. uncertain tells that the video
// was found by its words after the answer to the upload was lost: nothing is set there.
func (p *Preparer) WithoutThumbnail(ctx context.Context, t *Target, uncertain bool) (why string) {
	to, ok := p.o.Platforms[t.Conn.Spec.Platform]
	job := p.Job(t)
	switch {
	case !ok || !usesThumbnail(to.Capabilities(), &job.Content):
		return ""
	case uncertain:
		return whyLostAnswer
	case p.o.Thumbnails == nil:
		return whyNoProgram
	}
	ctx, cancel := context.WithTimeout(ctx, thumbnailLookupTimeout)
	defer cancel()
	source, at := moment(&job.Content)
	_, err := p.o.Thumbnails.Find(ctx, source, at)
	problem := new(thumbnail.ExtractError)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &problem):
		return problem.Message
	default:
		return whyNotThere
	}
}
