// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rendition converts files that Herald accepts but a platform does not, in separate processes. Images get a
// different format, fewer pixels or bytes, or bars at the sides. ffmpeg converts videos to H.264 and AAC, with fewer
// pixels, a different frame rate or a lower bit rate, and with the index first; it also extracts thumbnails. An
// installation may lack ffmpeg. A rendition is made once and kept in the store next to the file.
package rendition

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/herald-social/herald/internal/media/store"
)

// The formats of renditions.
const (
	jpegType = "image/jpeg"
	pngType  = "image/png"
)

// Source is an image in the store.
type Source struct {
	// Key and ETag identify the file and its content.
	Key, ETag string
	// MIMEType is its type, and Size its length in bytes.
	MIMEType string
	Size     int64
}

// Target holds the requirements for a rendition. Zero values set no limit.
type Target struct {
	// Types are the allowed formats, as MIME types, including image/jpeg. If empty, all are allowed.
	Types []string
	// MaxBytes limits the file. MaxWidth and MaxHeight limit the picture, in pixels.
	MaxBytes            int64
	MaxWidth, MaxHeight int
	// MinAspect and MaxAspect limit width divided by height.
	MinAspect, MaxAspect float64
}

func (t Target) allows(mimeType string) bool {
	return len(t.Types) == 0 || slices.Contains(t.Types, mimeType)
}

// Rendition is a rendition in the store.
type Rendition struct {
	Key, ETag     string
	MIMEType      string
	Size          int64
	Width, Height int
	// Blank means that the image is transparent and its visible parts are as white as the rendition's background, so that
	// the rendition is an empty picture.
	Blank bool
}

// ConversionError is the reason a file cannot be converted. Another file is needed.
type ConversionError struct {
	// Message is phrased to follow "the file", and includes the remedy.
	Message string
	// Err is the cause, for logs. It may be nil.
	Err error
}

func (p *ConversionError) Error() string { return p.Message }
func (p *ConversionError) Unwrap() error { return p.Err }

func problemf(format string, args ...any) *ConversionError {
	return &ConversionError{Message: fmt.Sprintf(format, args...)}
}

// formatVersion is part of every key. Change it whenever the same source and target give a different result.
const formatVersion = "2"

// Key returns the store's key for the rendition of a source for a target.
func Key(source Source, t Target) string {
	return store.Derived(source.Key, store.Digest(fmt.Sprintf("%s\n%q\n%q\n%d %d %d\n%g %g",
		formatVersion, source.ETag, t.Types, t.MaxBytes, t.MaxWidth, t.MaxHeight, t.MinAspect, t.MaxAspect)))
}

// Unconvertible returns the reason an image cannot be converted, phrased to follow "the file", or "" if it can be. Only
// the header is checked, with no limits on the target. A non-nil error means that reading failed.
func Unconvertible(r io.ReaderAt, size int64, mimeType string) (string, error) {
	_, err := plan(Source{MIMEType: mimeType, Size: size}, Target{}, r)
	if problem, ok := errors.AsType[*ConversionError](err); ok {
		return problem.Message, nil
	}
	return "", err
}
