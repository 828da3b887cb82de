// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/platforms"
)

// Conversions converts videos; see rendition.Transcoder.
type Conversions interface {
	// Find returns the conversion of a video, or store.ErrNotFound.
	Find(ctx context.Context, source rendition.Source, t rendition.Profile) (rendition.Rendition, error)
	// Make returns or creates the conversion of a video. done is called with the completed share, from 0 to 1.
	Make(ctx context.Context, source rendition.TranscodeSource, t rendition.Profile, done func(share float64)) (rendition.Rendition, error)
	// Forget drops a cached conversion, so that Find looks for it in the store again.
	Forget(r rendition.Rendition)
}

func (c converter) convertsVideo(file *platforms.File) bool {
	return c.rules.ForConversion().Converts(file)
}

// convertVideo replaces a video with its conversion, and creates the conversion if necessary. done receives the
// progress. It is nil if the conversion should already exist.
func (c converter) convertVideo(ctx context.Context, file *platforms.File, original stored, done func(share float64)) *platforms.Error {
	if c.conversions == nil {
		return &platforms.Error{Class: platforms.ClassPermanent, Problem: fmt.Sprintf(
			"the video %q must be converted for the platform, but this installation does not convert videos: %s", file.Name, c.unconverted)}
	}
	wanted := c.rules.ForConversion().Conversion(file)
	source := rendition.Source{Key: original.key, ETag: file.ETag, MIMEType: string(file.MIMEType), Size: file.Size}
	target := rendition.Profile{Width: wanted.Width, Height: wanted.Height, FrameRate: wanted.FrameRate, BitRate: wanted.BitRate}
	r, err := c.conversions.Find(ctx, source, target)
	if errors.Is(err, store.ErrNotFound) {
		r, err = c.conversions.Make(ctx, rendition.TranscodeSource{Source: source, Duration: file.Duration}, target, done)
	}
	if err != nil {
		return videoUnconverted(file, err)
	}
	after := wanted.After(file)
	after.MIMEType, after.Size, after.Width, after.Height, after.ETag = v1alpha1.MimeType(r.MIMEType), r.Size, r.Width, r.Height, r.ETag
	after.Bytes = converted{files: c.files, rendition: r, forget: c.conversions.Forget, sent: original.sent}
	*file = after
	return nil
}

func videoUnconverted(file *platforms.File, err error) *platforms.Error {
	problem := new(rendition.TranscodeError)
	switch {
	case errors.As(err, &problem) && problem.Final:
		return &platforms.Error{Class: platforms.ClassPermanent, Err: err, Problem: fmt.Sprintf("the video %q %s", file.Name, problem.Message)}
	case errors.As(err, &problem):
		return &platforms.Error{Class: platforms.ClassTransient, Err: err, Problem: fmt.Sprintf("the video %q %s", file.Name, problem.Message)}
	case errors.Is(err, store.ErrChanged), errors.Is(err, store.ErrNotFound):
		return file.Unreadable(fmt.Errorf("%w: %w", platforms.ErrFileChanged, err))
	case errors.Is(err, rendition.ErrBusy):
		return &platforms.Error{Class: platforms.ClassTransient, Err: err, Problem: fmt.Sprintf("the video %q waits for other videos to be converted", file.Name)}
	default:
		return file.Unreadable(err)
	}
}

// conversionTime returns a preparation's extra time for converting videos: half for waiting in the queue, half for the
// conversion.
func (c converter) conversionTime(content *platforms.Content) time.Duration {
	var all time.Duration
	for i := range content.Media {
		file := &content.Media[i]
		if original, ok := file.Bytes.(stored); ok && original.converts && c.convertsVideo(file) {
			all += 2 * rendition.TranscodeTimeout(file.Duration)
		}
	}
	return all
}

// tenths is the progress of a conversion, in tenths, or zero if there is none.
type tenths struct{ done atomic.Int32 }

// update sets the share, from 0 to 1. It reports whether the tenth has changed, since each reported change causes a
// write to the post.
func (t *tenths) update(share float64) (changed bool) {
	const ten = 10
	now := int32(share*ten) + 1
	return t.done.Swap(now) != now
}

func (t *tenths) percent() (done int, underWay bool) {
	const ten = 10
	now := int(t.done.Load())
	return (now - 1) * ten, now > 0
}
