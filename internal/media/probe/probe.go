// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe examines media files: a file's real type, its width and height, its duration, and whether it is
// complete. It reads only the few parts of the file that it needs.
package probe

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gabriel-vasile/mimetype"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

// Facts are the properties of a file's content.
type Facts struct {
	// MIMEType is the type of the content. It is one of the types that Herald accepts.
	MIMEType string
	// Width and Height are in pixels, for the picture as it is displayed: after the rotation that the file requests.
	Width, Height int32
	// Duration is how long a video plays, or zero for an image.
	Duration time.Duration
	// FrameRate is a video's average number of frames per second, or zero if it is unknown. FrameRateVaries means that
	// frames have different durations.
	FrameRate       float64
	FrameRateVaries bool
	// VideoCodec and AudioCodec are ffmpeg's codec names, such as "h264" and "aac"; for a codec without such a name, they
	// are the four characters of its sample entry. AudioCodec is empty for a video without sound.
	VideoCodec, AudioCodec string
	// HDR means that a video has a high dynamic range.
	HDR bool
	// Animated means that an image moves.
	Animated bool
	// Turned means that an image is rotated or mirrored for display. MultiPicture is Header.MultiPicture.
	Turned, MultiPicture bool
	// Unconvertible is the reason an image cannot be converted; see Verifier.
	Unconvertible string
}

// InvalidFileError is the reason a file cannot be posted: it is damaged, or does not match its declaration.
type InvalidFileError struct {
	// Reason is the reason of the Media's Ready condition.
	Reason string
	// Message describes the problem, as a sentence.
	Message string
}

func (p *InvalidFileError) Error() string { return p.Message }

func damaged(format string, args ...any) *InvalidFileError {
	return &InvalidFileError{Reason: v1alpha1.ReasonDamaged, Message: fmt.Sprintf(format, args...)}
}

func unsupported(format string, args ...any) *InvalidFileError {
	return &InvalidFileError{Reason: v1alpha1.ReasonUnsupported, Message: fmt.Sprintf(format, args...)}
}

// budget limits the bytes read from a file: a whole image, or 4,000 fragments of a video, which is over an hour.
const budget = 32 << 20

// sniffed is the number of bytes at the start of a file that determine its type.
const sniffed = 3072

// isVideo reports whether a file may be an MP4 or QuickTime video, judging by its first bytes and by the type that the
// sniffing library found. The library names a video after its brand, which identifies the program that wrote it: 3gp4
// is from Android, dby1 from Dolby's tools. The brand may also be missing, or come after other boxes. HEIC, AVIF and
// JPEG 2000 images use the same boxes.
func isVideo(head []byte, found string) bool {
	const kindAt, kindEnd = 4, 8
	if len(head) < kindEnd || strings.HasPrefix(found, "image/") {
		return false
	}
	switch string(head[kindAt:kindEnd]) {
	case "ftyp", "styp", "moov", "moof", "mdat", "sidx", "free", "skip", "wide", "pnot", "uuid", "emsg", "prft":
		return true
	default:
		return false
	}
}

// Probe examines a file with the given size and declared type. The error is an *InvalidFileError if the file is at
// fault; any other comes from reading it.
func Probe(r io.ReaderAt, size int64, declared string) (Facts, error) {
	if size <= 0 {
		return Facts{}, damaged("The file is empty.")
	}
	file := store.NewBlockReader(r, size, budget)
	facts, err := examine(file, size, declared)
	if failure := file.Failure(); failure != nil && !errors.Is(failure, store.ErrReadBudget) {
		return Facts{}, failure
	} else if failure != nil {
		return Facts{}, damaged("The file is too complex: the first %d MiB of its structure do not describe it. Export it again.", budget>>20)
	}
	if err != nil {
		return Facts{}, err
	}
	facts.MIMEType = declared
	return facts, nil
}

// examine is like Probe, except that a read error may look like damage; the store.BlockReader stores such errors.
func examine(file *store.BlockReader, size int64, declared string) (Facts, error) {
	head := make([]byte, min(size, sniffed))
	if _, err := file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return Facts{}, err
	}
	found, _, _ := strings.Cut(mimetype.Detect(head).String(), ";")
	if found == "image/apng" {
		// An animated PNG is a PNG, and viewers that do not support animations show it.
		found = string(v1alpha1.MimePNG)
	}
	declaredFilm := declared == string(v1alpha1.MimeMP4) || declared == string(v1alpha1.MimeQuickTime)
	if found != declared && (!declaredFilm || !isVideo(head, found)) {
		return Facts{}, &InvalidFileError{
			Reason:  v1alpha1.ReasonWrongType,
			Message: fmt.Sprintf("The file was declared as %s, but its content is %s. Correct the declared type, or convert the file.", declared, named(found)),
		}
	}
	switch v1alpha1.MimeType(declared) {
	case v1alpha1.MimeMP4, v1alpha1.MimeQuickTime:
		return video(file, size)
	case v1alpha1.MimeJPEG, v1alpha1.MimePNG, v1alpha1.MimeWebP:
		return picture(file, size, v1alpha1.MimeType(declared))
	default:
		return Facts{}, &InvalidFileError{Reason: v1alpha1.ReasonWrongType, Message: fmt.Sprintf("Files of type %s cannot be posted.", declared)}
	}
}

func named(found string) string {
	if found == "application/octet-stream" {
		return "of no known type"
	}
	return found
}
