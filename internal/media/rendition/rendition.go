// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rendition converts files that Herald accepts and a platform does not, in separate processes. It converts
// images to another format, to fewer pixels or bytes, or by bars at the sides. ffmpeg converts videos to H.264 and AAC,
// to fewer pixels, to another frame rate and to fewer bits, with the index first, and extracts thumbnails; an
// installation may lack it. A rendition is made once and kept in the store next to the file.
package rendition

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/herald-social/herald/internal/media/store"
)

// The formats that renditions are written in.
const (
	jpegType = "image/jpeg"
	pngType  = "image/png"
)

// Source is an image in the store.
type Source struct {
	// Key and ETag identify the file and its bytes.
	Key, ETag string
	// MIMEType is its type, and Size its length in bytes.
	MIMEType string
	Size     int64
}

// Target are the requirements of a rendition. Zero values set no limit.
type Target struct {
	// Types are the allowed formats, as MIME types; image/jpeg is one of them. Empty allows all.
	Types []string
	// MaxBytes limits the file, MaxWidth and MaxHeight the picture, in pixels.
	MaxBytes            int64
	MaxWidth, MaxHeight int
	// MinAspect and MaxAspect limit width divided by height.
	MinAspect, MaxAspect float64
}

// allows reports whether a type is allowed.
func (t Target) allows(mimeType string) bool {
	return len(t.Types) == 0 || slices.Contains(t.Types, mimeType)
}

// Rendition is a rendition in the store.
type Rendition struct {
	Key, ETag     string
	MIMEType      string
	Size          int64
	Width, Height int
	// Blank means that the image is transparent and its visible parts are as white as the ground of the rendition, so
	// that the rendition is an empty picture.
	Blank bool
}

// ConversionError is why a file cannot be converted: another file is needed.
type ConversionError struct {
	// Message continues "the file …", with the remedy.
	Message string
	// Err is the cause, for logs; may be nil.
	Err error
}

func (p *ConversionError) Error() string { return p.Message }
func (p *ConversionError) Unwrap() error { return p.Err }

func problemf(format string, args ...any) *ConversionError {
	return &ConversionError{Message: fmt.Sprintf(format, args...)}
}

// formatVersion is part of every key. Change it when the same source and target give another result than before.
const formatVersion = "2"

// Key returns the key of the rendition of a source for a target.
func Key(source Source, t Target) string {
	return store.Derived(source.Key, store.Digest(fmt.Sprintf("%s\n%q\n%q\n%d %d %d\n%g %g",
		formatVersion, source.ETag, t.Types, t.MaxBytes, t.MaxWidth, t.MaxHeight, t.MinAspect, t.MaxAspect)))
}

// Unconvertible returns why an image of this size and type cannot be converted, in words that continue "the file", or
// "" if it can. It checks the header, for the largest rendition. The error is from reading it.
func Unconvertible(r io.ReaderAt, size int64, mimeType string) (string, error) {
	_, err := plan(Source{MIMEType: mimeType, Size: size}, Target{}, r)
	if problem, ok := errors.AsType[*ConversionError](err); ok {
		return problem.Message, nil
	}
	return "", err
}
