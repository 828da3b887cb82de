// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rendition makes another version of an image that Herald takes and a
// platform does not: of another format, with fewer pixels or bytes, or with bars
// at its sides. It is made once and kept in the store beside the image, whoever
// asks for it.
package rendition

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	// Key and ETag are where it lies and which bytes are meant.
	Key, ETag string
	// MIMEType is what it is, and Size how many bytes it has.
	MIMEType string
	Size     int64
}

// Target is what a rendition must be. Zero values set no bound.
type Target struct {
	// Types are the formats that are taken, as MIME types; image/jpeg is one of
	// them. Empty for all.
	Types []string
	// MaxBytes bounds the file, MaxWidth and MaxHeight the picture, in pixels.
	MaxBytes            int64
	MaxWidth, MaxHeight int
	// MinAspect and MaxAspect bound width divided by height.
	MinAspect, MaxAspect float64
}

// takes reports whether files of a type are taken.
func (t Target) takes(mimeType string) bool {
	return len(t.Types) == 0 || slices.Contains(t.Types, mimeType)
}

// Rendition is one that lies in the store.
type Rendition struct {
	Key, ETag     string
	MIMEType      string
	Size          int64
	Width, Height int
}

// Problem is why no rendition can be made of a file: another file is needed.
type Problem struct {
	// Message continues "the file …" and says what to do.
	Message string
	// Err is the cause, for logs; may be nil.
	Err error
}

// Error returns the message for people.
func (p *Problem) Error() string { return p.Message }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

func problemf(format string, args ...any) *Problem {
	return &Problem{Message: fmt.Sprintf(format, args...)}
}

// making is part of every key. It changes when the same source and target
// should come out otherwise than before.
const making = "1"

// Key is where the rendition of a source for a target lies: beside the source,
// and always at the same place, so that nothing has to remember it.
func Key(source Source, t Target) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%q\n%q\n%d %d %d\n%g %g", making, source.ETag, t.Types, t.MaxBytes, t.MaxWidth, t.MaxHeight, t.MinAspect, t.MaxAspect)
	return store.Derived(source.Key, hex.EncodeToString(hash.Sum(nil)[:keyLength]))
}

// keyLength is how many bytes of a hash name a rendition among those of one file.
const keyLength = 16
