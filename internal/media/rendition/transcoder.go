// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"k8s.io/utils/lru"

	"github.com/herald-social/herald/internal/media/probe"
)

const mimeType = "video/mp4"

// Converter converts videos; FFmpegConverter implements it.
type Converter interface {
	Convert(ctx context.Context, video VideoSource, c *Conversion, output *os.File, done func(share float64)) error
}

// Transcoder converts videos in the store, and stores the conversions next to them. It is safe for concurrent use.
type Transcoder struct {
	store     FileStore
	converter Converter
	cache     *Cache
	// failed holds, by key, the final errors for videos that cannot be converted.
	failed *lru.Cache

	mu sync.Mutex
	// progress is the finished share of each conversion in progress, by key.
	progress map[string]float64
}

const rememberedTranscodeProblems = 1024

// NewTranscoder returns a Transcoder whose work takes the given slots.
func NewTranscoder(store FileStore, converter Converter, turns Slots) *Transcoder {
	return &Transcoder{
		store: store, converter: converter, cache: NewCache(store, turns), failed: lru.New(rememberedTranscodeProblems),
		progress: map[string]float64{},
	}
}

// Find returns the conversion of a source for a target, from memory or else from the store. The error is
// store.ErrNotFound if there is none.
func (m *Transcoder) Find(ctx context.Context, source Source, t Profile) (Rendition, error) {
	return m.cache.Find(ctx, TranscodeKey(source, t))
}

// Forget makes Find read from the store again.
func (m *Transcoder) Forget(r Rendition) { m.cache.Forget(r) }

// Progress returns the finished share of a conversion, from 0 to 1, and whether it is in progress.
func (m *Transcoder) Progress(source Source, t Profile) (share float64, underWay bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	share, underWay = m.progress[TranscodeKey(source, t)]
	return share, underWay
}

// Make returns the conversion of a source for a target, and makes it if the store has none. From time to time, it calls
// done, unless that is nil, with the share finished so far, from 0 to 1. The error is a *TranscodeError if the video
// cannot be converted, ErrBusy if it got no slot, and store.ErrChanged or store.ErrNotFound if the source is gone; any
// other comes from the store or the system.
func (m *Transcoder) Make(ctx context.Context, source TranscodeSource, t Profile, done func(share float64)) (Rendition, error) {
	key := TranscodeKey(source.Source, t)
	if known, ok := m.failed.Get(key); ok {
		if p, ok := known.(*TranscodeError); ok {
			return Rendition{}, p
		}
	}
	r, err := m.cache.GetOrCreate(ctx, key, func() (Output, error) {
		m.setProgress(key, 0)
		defer m.clearProgress(key)
		return m.convert(ctx, &source, t, func(share float64) {
			m.setProgress(key, share)
			if done != nil {
				done(share)
			}
		})
	})
	if exhausted, ok := errors.AsType[*ExhaustedError](err); ok {
		err = tooMuch(exhausted)
	}
	if problem, ok := errors.AsType[*TranscodeError](err); ok && problem.Final {
		m.failed.Add(key, problem)
	}
	return r, err
}

func (m *Transcoder) setProgress(key string, share float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress[key] = share
}

func (m *Transcoder) clearProgress(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.progress, key)
}

// convert converts a video into an unnamed temporary file, which is removed when the result's body is closed.
func (m *Transcoder) convert(ctx context.Context, source *TranscodeSource, t Profile, done func(share float64)) (converted Output, err error) {
	file := m.store.ReaderAt(ctx, source.Key, source.ETag, source.Size)
	facts, err := probe.Probe(file, source.Size, source.MIMEType)
	if problem, ok := errors.AsType[*probe.InvalidFileError](err); ok {
		return converted, &TranscodeError{Message: "cannot be converted: " + problem.Message, Final: true, Err: err}
	} else if err != nil {
		return converted, err
	}
	output, err := os.CreateTemp("", "herald-conversion-")
	if err != nil {
		return converted, fmt.Errorf("cannot make a file for the conversion: %w", err)
	}
	defer func() {
		if err != nil {
			_ = output.Close() // the file is deleted in any case
		}
	}()
	if err := os.Remove(output.Name()); err != nil {
		return converted, fmt.Errorf("cannot unlink the file of the conversion: %w", err)
	}
	if err := m.converter.Convert(ctx, StoredVideo(m.store.Open, source.Source), &Conversion{Source: *source, Target: t, HDR: facts.HDR}, output, done); err != nil {
		return converted, err
	}
	size, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return converted, fmt.Errorf("cannot read the conversion: %w", err)
	}
	result, err := probe.Probe(output, size, mimeType)
	if err != nil {
		return converted, &TranscodeError{Message: "cannot be converted: ffmpeg produced no video; export it again, as an MP4 with H.264, and upload that", Final: true, Err: err}
	}
	if _, err := output.Seek(0, io.SeekStart); err != nil {
		return converted, fmt.Errorf("cannot read the conversion: %w", err)
	}
	return Output{Body: output, Size: size, MIMEType: mimeType, Width: int(result.Width), Height: int(result.Height)}, nil
}
