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
	"github.com/herald-social/herald/platforms"
)

// Thumbnails extracts pictures from videos; see rendition.Thumbnailer.
type Thumbnails interface {
	// Find returns the picture at a position in a video. Its errors are *rendition.ExtractError and store.ErrNotFound.
	Find(ctx context.Context, source rendition.Source, at time.Duration) (rendition.Rendition, error)
	// Make returns the picture at a position in a video, and creates it if necessary.
	Make(ctx context.Context, source rendition.Source, at time.Duration) (rendition.Rendition, error)
	// Forget drops a cached picture, so that Find looks for it in the store again.
	Forget(r rendition.Rendition)
}

const (
	// thumbnailTimeout limits the wait for a thumbnail: half for the queue, half for the extraction.
	thumbnailTimeout       = 2 * time.Minute
	thumbnailLookupTimeout = 2 * time.Second
)

// usesThumbnail reports whether a video's thumbnail was chosen and the platform needs a picture of it.
func usesThumbnail(capabilities platforms.Capabilities, c *platforms.Content) bool {
	return capabilities.TakesThumbnail && c.ThumbnailAt != nil && len(c.Media) == 1 && c.Media[0].IsVideo()
}

// moment returns the file and the position of a thumbnail. Positions beyond the end are moved to the end.
func moment(c *platforms.Content) (source rendition.Source, at time.Duration) {
	file := &c.Media[0]
	at = *c.ThumbnailAt
	if file.Duration > 0 {
		at = min(at, file.Duration)
	}
	original, _ := file.Bytes.(stored)
	return rendition.Source{Key: original.key, ETag: file.ETag, MIMEType: string(file.MIMEType), Size: file.Size}, at
}

// ensureThumbnail creates the thumbnail if necessary. It only logs failures: a video can be published without one.
func (c converter) ensureThumbnail(ctx context.Context, content *platforms.Content) {
	if c.thumbnails == nil || !usesThumbnail(c.rules, content) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, thumbnailTimeout)
	defer cancel()
	source, at := moment(content)
	if _, err := c.thumbnails.Make(ctx, source, at); err != nil {
		log.FromContext(ctx).Info("no thumbnail", "file", content.Media[0].Name, "at", at.String(), "problem", err.Error(), "cause", errors.Unwrap(err))
	}
}

func (c converter) addThumbnail(ctx context.Context, content *platforms.Content) {
	if c.thumbnails == nil || !usesThumbnail(c.rules, content) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, thumbnailLookupTimeout)
	defer cancel()
	source, at := moment(content)
	r, err := c.thumbnails.Find(ctx, source, at)
	if err != nil {
		return // The report of the publication contains the reason.
	}
	content.Thumbnail = &platforms.File{
		Name: content.Media[0].Name, MIMEType: v1alpha1.MimeType(r.MIMEType), Size: r.Size, Width: r.Width, Height: r.Height, ETag: r.ETag,
		Bytes: converted{files: c.files, rendition: r, forget: c.thumbnails.Forget, sent: &sent{}},
	}
}

// AddThumbnail adds the thumbnail to the content of a video that is already published.
func (p *Preparer) AddThumbnail(ctx context.Context, to platforms.Publisher, content *platforms.Content) {
	converter{to: to, rules: to.Capabilities(), files: p.o.Files, thumbnails: p.o.Thumbnails}.addThumbnail(ctx, content)
}

// Reasons why a published video lacks its thumbnail.
const (
	whyNoProgram  = "the manager has no ffmpeg to take it out of the video (install ffmpeg, or name it in thumbnails.ffmpeg of the manager's configuration)"
	whyNotThere   = "its picture could not be made, or read in the media store, in time"
	whyLostAnswer = "the response to the upload was lost, and the video was found only by its text, which another video may share"
)

// WithoutThumbnail returns the reason why a target's published video lacks the chosen thumbnail, or "" if it has it or
// none was chosen. uncertain is set if the response to the upload was lost and the video was found by its text; Herald
// then does not set a thumbnail.
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
	problem := new(rendition.ExtractError)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &problem):
		return problem.Message
	default:
		return whyNotThere
	}
}
