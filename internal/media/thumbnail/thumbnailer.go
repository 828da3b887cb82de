// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package thumbnail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/lru"

	"github.com/herald-social/herald/internal/media/ffmpeg"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
)

// Extractor extracts pictures from videos; FFmpeg implements it.
type Extractor interface {
	Extract(ctx context.Context, video ffmpeg.Video, at time.Duration) (Picture, error)
}

// Thumbnailer extracts pictures from videos in the store, and stores them next to the videos. It is safe for concurrent
// use.
type Thumbnailer struct {
	store     rendition.FileStore
	extractor Extractor
	cache     *rendition.Cache
	// failed are the problems of the pictures that could not be made, by key.
	failed *lru.Cache
}

// rememberedProblems is the number of problems that a process remembers.
const rememberedProblems = 1024

// NewThumbnailer returns a Thumbnailer whose work takes these slots.
func NewThumbnailer(store rendition.FileStore, taker Extractor, turns rendition.Slots) *Thumbnailer {
	return &Thumbnailer{store: store, extractor: taker, cache: rendition.NewCache(store, turns), failed: lru.New(rememberedProblems)}
}

// formatVersion is part of every key. Change it when the same video and moment give another picture than before.
const formatVersion = "2"

// Key returns the key of the picture at a moment of a video.
func Key(source rendition.Source, at time.Duration) string {
	return store.Derived(source.Key, store.Digest(fmt.Sprintf("frame %s\n%q\n%d\n%d %d", formatVersion, source.ETag, at.Milliseconds(), maxWidth, maxHeight)))
}

// Find returns the picture at a moment of a video, from memory or else from the store. If there is none, the error is
// the *ExtractError of this process's last attempt, or store.ErrNotFound.
func (m *Thumbnailer) Find(ctx context.Context, source rendition.Source, at time.Duration) (rendition.Rendition, error) {
	key := Key(source, at)
	r, err := m.cache.Find(ctx, key)
	if p := m.problem(key); p != nil && errors.Is(err, store.ErrNotFound) {
		return r, p
	}
	return r, err
}

// Forget makes Find read from the store again.
func (m *Thumbnailer) Forget(r rendition.Rendition) { m.cache.Forget(r) }

func (m *Thumbnailer) problem(key string) *ExtractError {
	known, _ := m.failed.Get(key)
	p, _ := known.(*ExtractError)
	return p
}

// Make returns the picture at a moment of a video, and makes it if the store has none. The error is an *ExtractError,
// which Find repeats, or the store's.
func (m *Thumbnailer) Make(ctx context.Context, source rendition.Source, at time.Duration) (rendition.Rendition, error) {
	key := Key(source, at)
	r, err := m.cache.GetOrCreate(ctx, key, func() (rendition.Output, error) {
		// Another call may have failed meanwhile.
		if p := m.problem(key); p != nil && p.Final {
			return rendition.Output{}, p
		}
		picture, err := m.extractor.Extract(ctx, ffmpeg.Stored(m.store.Open, source), at)
		return rendition.Output{Data: picture.Data, MIMEType: "image/jpeg", Width: picture.Width, Height: picture.Height}, err
	})
	if errors.Is(err, rendition.ErrBusy) {
		err = &ExtractError{Message: "too many other videos were waiting for theirs", Err: err}
	}
	if exhausted, ok := errors.AsType[*rendition.ExhaustedError](err); ok {
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
