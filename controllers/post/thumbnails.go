// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"
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
	// thumbnailWithin is how long a preparation waits for its thumbnail: as
	// long for others to have theirs as for its own.
	thumbnailWithin = 2 * time.Minute
	// thumbnailFound is how long a publication waits for word of one.
	thumbnailFound = 2 * time.Second
)

// wantsPicture reports whether a moment of the video was chosen as thumbnail of
// which the platform wants a picture.
func wantsPicture(limits platforms.Capabilities, c *platforms.Content) bool {
	return limits.TakesThumbnail && c.ThumbnailAt != nil && len(c.Media) == 1 && c.Media[0].IsVideo()
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

// makeThumbnail has the picture made, if one is wanted. A video goes out
// without one as well.
func (c converting) makeThumbnail(ctx context.Context, content *platforms.Content) {
	if c.thumbnails == nil || !wantsPicture(c.Publisher.Capabilities(), content) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, thumbnailWithin)
	defer cancel()
	source, at := moment(content)
	if _, err := c.thumbnails.Make(ctx, source, at); err != nil {
		log.FromContext(ctx).Info("no thumbnail", "file", content.Media[0].Name, "at", at.String(), "problem", err.Error(), "cause", errors.Unwrap(err))
	}
}

// addThumbnail hands out the picture that was made.
func (c converting) addThumbnail(ctx context.Context, content *platforms.Content) {
	if c.thumbnails == nil || !wantsPicture(c.Publisher.Capabilities(), content) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, thumbnailFound)
	defer cancel()
	source, at := moment(content)
	r, err := c.thumbnails.Find(ctx, source, at)
	if err != nil {
		return // Whoever tells of the publication says so.
	}
	content.Thumbnail = &platforms.File{
		Name: content.Media[0].Name, MIMEType: v1alpha1.MimeType(r.MIMEType), Size: r.Size, Width: r.Width, Height: r.Height, ETag: r.ETag,
		Bytes: converted{files: c.files, rendition: r, forget: c.thumbnails.Forget},
	}
}

const (
	// msgNoThumbnail tells of a video that is online without its thumbnail.
	msgNoThumbnail = "target %d: the video is online on %s without the chosen thumbnail, because %s; set a picture there by hand"

	whyNoProgram  = "the manager has no ffmpeg to take it out of the video (install ffmpeg, or name it with the manager's flag --ffmpeg)"
	whyNotThere   = "its picture could not be made, or read in the media store, in time"
	whyLostAnswer = "the answer to the upload was lost, and the thumbnail belongs to that call"
)

// tellThumbnail tells the owner of a post that is online without the thumbnail
// that was chosen: why says so if it is known, or else what became of the picture.
func (s *scope) tellThumbnail(ctx context.Context, i int, publisher platforms.Publisher, why string) {
	content := s.content(s.post, i)
	if !wantsPicture(publisher.Capabilities(), &content) {
		return
	}
	if why == "" {
		why = s.withoutPicture(ctx, &content)
	}
	if why != "" {
		s.warn(v1alpha1.ReasonThumbnailNotSet, fmt.Sprintf(msgNoThumbnail, i, s.post.Status.Targets[i].Platform, why))
	}
}

// withoutPicture says why there is no picture; "" if there is one.
func (s *scope) withoutPicture(ctx context.Context, content *platforms.Content) string {
	if s.Thumbnails == nil {
		return whyNoProgram
	}
	ctx, cancel := context.WithTimeout(ctx, thumbnailFound)
	defer cancel()
	source, at := moment(content)
	_, err := s.Thumbnails.Find(ctx, source, at)
	problem := new(thumbnail.Problem)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &problem):
		return problem.Message
	default:
		return whyNotThere
	}
}
