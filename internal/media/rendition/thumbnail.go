// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/lru"

	"github.com/herald-social/herald/internal/media/store"
)

// Extractor extracts pictures from videos; FrameExtractor implements it.
type Extractor interface {
	Extract(ctx context.Context, video VideoSource, at time.Duration) (Picture, error)
}

// Thumbnailer extracts pictures from videos, and stores them next to the videos. It is safe for concurrent use.
type Thumbnailer struct {
	store     FileStore
	extractor Extractor
	cache     *Cache
	// failed holds, by key, the errors for pictures that could not be made.
	failed *lru.Cache
}

const rememberedThumbnailProblems = 1024

// NewThumbnailer returns a Thumbnailer whose work takes the given slots.
func NewThumbnailer(store FileStore, taker Extractor, turns Slots) *Thumbnailer {
	return &Thumbnailer{store: store, extractor: taker, cache: NewCache(store, turns), failed: lru.New(rememberedThumbnailProblems)}
}

// thumbnailVersion is part of every key. Change it whenever the same video and time give a different picture.
const thumbnailVersion = "2"

// ThumbnailKey returns the store's key for the picture at the given time in a video.
func ThumbnailKey(source Source, at time.Duration) string {
	return store.Derived(source.Key, store.Digest(fmt.Sprintf("frame %s\n%q\n%d\n%d %d", thumbnailVersion, source.ETag, at.Milliseconds(), maxWidth, maxHeight)))
}

// Find returns the picture at the given time in a video, from memory or else from the store. If there is none, the
// error is the *ExtractError of this process's last attempt, or store.ErrNotFound.
func (m *Thumbnailer) Find(ctx context.Context, source Source, at time.Duration) (Rendition, error) {
	key := ThumbnailKey(source, at)
	r, err := m.cache.Find(ctx, key)
	if p := m.problem(key); p != nil && errors.Is(err, store.ErrNotFound) {
		return r, p
	}
	return r, err
}

// Forget makes Find read from the store again.
func (m *Thumbnailer) Forget(r Rendition) { m.cache.Forget(r) }

func (m *Thumbnailer) problem(key string) *ExtractError {
	known, _ := m.failed.Get(key)
	p, _ := known.(*ExtractError)
	return p
}

// Make returns the picture at the given time in a video, and makes it if the store has none. The error is an
// *ExtractError, which Find repeats, or comes from the store.
func (m *Thumbnailer) Make(ctx context.Context, source Source, at time.Duration) (Rendition, error) {
	key := ThumbnailKey(source, at)
	r, err := m.cache.GetOrCreate(ctx, key, func() (Output, error) {
		// Another call may have failed in the meantime.
		if p := m.problem(key); p != nil && p.Final {
			return Output{}, p
		}
		picture, err := m.extractor.Extract(ctx, StoredVideo(m.store.Open, source), at)
		return Output{Data: picture.Data, MIMEType: "image/jpeg", Width: picture.Width, Height: picture.Height}, err
	})
	if errors.Is(err, ErrBusy) {
		err = &ExtractError{Message: "too many other videos were waiting for theirs", Err: err}
	}
	if exhausted, ok := errors.AsType[*ExhaustedError](err); ok {
		err = &ExtractError{Message: "the video " + exhausted.Error(), Final: true, Err: exhausted.Err}
	}
	problem := new(ExtractError)
	switch {
	case err == nil:
		m.failed.Remove(key)
	case errors.As(err, &problem):
		m.failed.Add(key, problem)
	}
	return r, err
}
