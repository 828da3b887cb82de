// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/platforms"
)

// Renditions makes renditions of images; see rendition.Maker.
type Renditions interface {
	// Find returns the rendition of an image, or store.ErrNotFound.
	Find(ctx context.Context, source rendition.Source, t rendition.Target) (rendition.Rendition, error)
	// Make returns the rendition of an image, and creates it if necessary.
	Make(ctx context.Context, source rendition.Source, t rendition.Target) (rendition.Rendition, error)
	// Forget drops a cached rendition, so that Find looks for it in the store again.
	Forget(r rendition.Rendition)
}

// converter wraps a platform's preparation. Before it calls the platform's own preparation, it replaces images that the
// platform does not accept with renditions, and extracts a video's thumbnail.
type converter struct {
	to platforms.Publisher
	// rules holds the platform's rules for the account.
	rules      platforms.Capabilities
	files      Files
	renditions Renditions
	thumbnails Thumbnails
	// conversions is nil if videos are not converted, for the reason in unconverted.
	conversions Conversions
	unconverted string
	// converts is set if the team's videos are converted.
	converts bool
	// converting is called with the finished share of a conversion. It may be nil.
	converting func(share float64)
}

// renditionTTL is the time for which a rendition is assumed to exist without a check. A rendition lives as long as its
// image; if it is missing anyway, the publisher creates it again.
const renditionTTL = 24 * time.Hour

// ttl returns the lifetime of a preparation. Every platform has one, since any of them may need renditions.
func (c converter) ttl() time.Duration {
	if lasts := c.rules.PreparedTTL; lasts > 0 {
		return lasts
	}
	return renditionTTL
}

// Prepares reports whether content needs preparation before its visible call.
func (c converter) Prepares(content platforms.Content) bool {
	if c.thumbnails != nil && usesThumbnail(c.rules, &content) {
		return true
	}
	for i := range content.Media {
		if !c.rules.Images.Accepts(&content.Media[i]) || c.converts && c.convertsVideo(&content.Media[i]) {
			return true
		}
	}
	preparer, ok := c.to.(platforms.Preparer)
	return ok && preparer.Prepares(content) || c.publishFetches(&content)
}

func (c converter) publishFetches(content *platforms.Content) bool {
	return c.rules.PublishFetches && content.Category == v1alpha1.CategoryImage
}

// Prepare runs the preparation of a job; see platforms.Preparer.
func (c converter) Prepare(ctx context.Context, job platforms.Job) (checkpoint string, err *platforms.Error) {
	if err := c.convert(ctx, &job.Content, c.renditions.Make); err != nil {
		return "", err
	}
	if c.publishFetches(&job.Content) {
		if err := ensureVerified(ctx, &job.Content); err != nil {
			return "", err
		}
	}
	if preparer, ok := c.to.(platforms.Preparer); ok && preparer.Prepares(job.Content) {
		if checkpoint, err = preparer.Prepare(ctx, job); err != nil {
			return checkpoint, err
		}
	}
	c.ensureThumbnail(ctx, &job.Content)
	return checkpoint, nil
}

// ready adds the prepared files to a job. Files that were removed in the meantime are created again.
func (c converter) ready(ctx context.Context, job *platforms.Job) *platforms.Error {
	err := c.convert(ctx, &job.Content, func(ctx context.Context, source rendition.Source, t rendition.Target) (rendition.Rendition, error) {
		r, err := c.renditions.Find(ctx, source, t)
		if errors.Is(err, store.ErrNotFound) {
			return c.renditions.Make(ctx, source, t)
		}
		return r, err
	})
	if err != nil {
		return err
	}
	c.addThumbnail(ctx, &job.Content)
	return nil
}

func (c converter) convert(ctx context.Context, content *platforms.Content, get func(context.Context, rendition.Source, rendition.Target) (rendition.Rendition, error)) *platforms.Error {
	images := c.rules.Images
	for i := range content.Media {
		file := &content.Media[i]
		original, ok := file.Bytes.(stored)
		if ok && original.converts && c.convertsVideo(file) {
			if err := c.convertVideo(ctx, file, original, c.converting); err != nil {
				return err
			}
			continue
		}
		if images.Accepts(file) || !ok {
			continue
		}
		source := rendition.Source{Key: original.key, ETag: file.ETag, MIMEType: string(file.MIMEType), Size: file.Size}
		r, err := get(ctx, source, renditionTarget(images.For(file)))
		if err != nil {
			return unconverted(file, err)
		}
		content.Media[i] = platforms.File{
			Name: file.Name, MIMEType: v1alpha1.MimeType(r.MIMEType), Size: r.Size, Width: r.Width, Height: r.Height, AltText: file.AltText,
			ETag: r.ETag, Bytes: converted{files: c.files, rendition: r, forget: c.renditions.Forget, sent: original.sent},
		}
	}
	return nil
}

// ensureVerified verifies the files in advance, so that Publish gets their URLs without delay.
func ensureVerified(ctx context.Context, content *platforms.Content) *platforms.Error {
	for i := range content.Media {
		file := &content.Media[i]
		original, ok := file.Bytes.(stored)
		if !ok {
			continue
		}
		if _, err := original.verified(ctx); err != nil {
			return file.Unreadable(err)
		}
	}
	return nil
}

func renditionTarget(l platforms.ImageLimits) rendition.Target {
	t := rendition.Target{MaxBytes: l.MaxBytes, MaxWidth: l.MaxWidth, MaxHeight: l.MaxHeight, MinAspect: l.MinAspect, MaxAspect: l.MaxAspect}
	for _, mimeType := range l.Types {
		t.Types = append(t.Types, string(mimeType))
	}
	return t
}

func unconverted(file *platforms.File, err error) *platforms.Error {
	var problem *rendition.ConversionError
	switch {
	case errors.As(err, &problem):
		return &platforms.Error{Class: platforms.ClassPermanent, Err: err, Problem: fmt.Sprintf("the file %q %s", file.Name, problem.Message)}
	case errors.Is(err, store.ErrChanged), errors.Is(err, store.ErrNotFound):
		return file.Unreadable(fmt.Errorf("%w: %w", platforms.ErrFileChanged, err))
	case errors.Is(err, rendition.ErrBusy):
		return &platforms.Error{Class: platforms.ClassTransient, Err: err, Problem: fmt.Sprintf("the file %q waits for other images to be converted", file.Name)}
	default:
		return file.Unreadable(err)
	}
}

type converted struct {
	files     Files
	rendition rendition.Rendition
	forget    func(rendition.Rendition)
	sent      *sent
}

// Open implements platforms.Bytes. A missing or changed rendition is dropped, and the retry creates it again.
func (c converted) Open(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
	body, err := c.sent.meter(c.files.Open(ctx, c.rendition.Key, c.rendition.ETag, offset, length))
	if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrNotFound) {
		c.forget(c.rendition)
	}
	return body, err
}

// Address implements platforms.Bytes.
func (c converted) Address(ctx context.Context, valid time.Duration) (string, error) {
	return c.files.PresignGet(ctx, c.rendition.Key, valid)
}
