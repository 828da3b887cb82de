// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package transcode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"k8s.io/utils/lru"

	"github.com/herald-social/herald/internal/media/ffmpeg"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
)

// mimeType is that of every conversion.
const mimeType = "video/mp4"

// Converter converts videos; FFmpeg implements it.
type Converter interface {
	Convert(ctx context.Context, video ffmpeg.Video, c *Conversion, output *os.File, done func(share float64)) error
}

// Maker converts videos in the store, and keeps the conversions beside them. It may be used by
// many goroutines at once.
type Maker struct {
	store     rendition.Store
	converter Converter
	shelf     *rendition.Shelf
	// failed are the final problems of videos that cannot be converted, by key.
	failed *lru.Cache

	mu sync.Mutex
	// shares is how much of each conversion is done that is under way, by key.
	shares map[string]float64
}

// rememberedProblems is how many problems a process remembers.
const rememberedProblems = 1024

// NewMaker returns a Maker whose work has these turns.
func NewMaker(store rendition.Store, converter Converter, turns rendition.Turns) *Maker {
	return &Maker{
		store: store, converter: converter, shelf: rendition.NewShelf(store, turns), failed: lru.New(rememberedProblems),
		shares: map[string]float64{},
	}
}

// Find returns the conversion of a source for a target, from memory or else from the store. The
// error is store.ErrNotFound if there is none.
func (m *Maker) Find(ctx context.Context, source rendition.Source, t Target) (rendition.Rendition, error) {
	return m.shelf.Find(ctx, Key(source, t))
}

// Forget makes Find ask the store again.
func (m *Maker) Forget(r rendition.Rendition) { m.shelf.Forget(r) }

// Done returns how much of a conversion is done, from 0 to 1, and whether it is under way.
func (m *Maker) Done(source rendition.Source, t Target) (share float64, underWay bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	share, underWay = m.shares[Key(source, t)]
	return share, underWay
}

// Make returns the conversion of a source for a target, and makes it if the store has none.
// done is called now and then with how much of it is done, from 0 to 1; nil is not. The error
// is a *Problem if the video cannot be converted, rendition.ErrBusy if its turn did not come,
// store.ErrChanged or store.ErrNotFound if the source is gone; any other is the store's, or
// the system's.
func (m *Maker) Make(ctx context.Context, source Source, t Target, done func(share float64)) (rendition.Rendition, error) {
	key := Key(source.Source, t)
	if known, ok := m.failed.Get(key); ok {
		if p, ok := known.(*Problem); ok {
			return rendition.Rendition{}, p
		}
	}
	r, err := m.shelf.Make(ctx, key, func() (rendition.Made, error) {
		m.note(key, 0)
		defer m.drop(key)
		return m.convert(ctx, &source, t, func(share float64) {
			m.note(key, share)
			if done != nil {
				done(share)
			}
		})
	})
	if exhausted, ok := errors.AsType[*rendition.Exhausted](err); ok {
		err = tooMuch(exhausted)
	}
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Final {
		m.failed.Add(key, problem)
	}
	return r, err
}

func (m *Maker) note(key string, share float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares[key] = share
}

func (m *Maker) drop(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.shares, key)
}

// convert converts a video into a file of this process, which has no name and ends with the
// rendition's body.
func (m *Maker) convert(ctx context.Context, source *Source, t Target, done func(share float64)) (made rendition.Made, err error) {
	file := m.store.ReaderAt(ctx, source.Key, source.ETag, source.Size)
	facts, err := probe.Probe(file, source.Size, source.MIMEType)
	if problem, ok := errors.AsType[*probe.Problem](err); ok {
		return made, &Problem{Message: "cannot be converted: " + problem.Message, Final: true, Err: err}
	} else if err != nil {
		return made, err
	}
	output, err := os.CreateTemp("", "herald-conversion-")
	if err != nil {
		return made, fmt.Errorf("cannot make a file for the conversion: %w", err)
	}
	defer func() {
		if err != nil {
			_ = output.Close() // It is gone in any case.
		}
	}()
	if err := os.Remove(output.Name()); err != nil {
		return made, fmt.Errorf("cannot hide the file of the conversion: %w", err)
	}
	if err := m.converter.Convert(ctx, ffmpeg.Stored(m.store.Open, source.Source), &Conversion{Source: *source, Target: t, HDR: facts.HDR}, output, done); err != nil {
		return made, err
	}
	size, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return made, fmt.Errorf("cannot read the conversion: %w", err)
	}
	result, err := probe.Probe(output, size, mimeType)
	if err != nil {
		return made, &Problem{Message: "cannot be converted: ffmpeg made no video of it; export it again, as an MP4 with H.264, and upload that", Final: true, Err: err}
	}
	if _, err := output.Seek(0, io.SeekStart); err != nil {
		return made, fmt.Errorf("cannot read the conversion: %w", err)
	}
	return rendition.Made{Body: output, Size: size, MIMEType: mimeType, Width: int(result.Width), Height: int(result.Height)}, nil
}
