// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe examines media files: what type a file really has, its width and
// height, how long it plays, and whether it is whole. It reads only the few parts
// of the file that say so.
package probe

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gabriel-vasile/mimetype"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Facts are what the content of a file says.
type Facts struct {
	// MIMEType is the type of the content, one of those that Herald takes.
	MIMEType string
	// Width and Height of the picture in pixels, as it is shown: a rotation that
	// the file asks for has been applied.
	Width, Height int32
	// Duration is how long a video plays; zero for an image.
	Duration time.Duration
}

// Problem is why a file cannot be posted: it is damaged, or not what was declared.
// Another file is needed.
type Problem struct {
	// Reason is the reason of the Media's Ready condition.
	Reason string
	// Message says what is wrong, as a sentence.
	Message string
}

func (p *Problem) Error() string { return p.Message }

func damaged(format string, args ...any) *Problem {
	return &Problem{Reason: v1alpha1.ReasonDamaged, Message: fmt.Sprintf(format, args...)}
}

// sniffed is how many bytes at the start of a file tell its type.
const sniffed = 3072

// alike are other names of the same type: programs of Apple and Adobe mark plain
// MP4 files with a brand of their own.
var alike = map[string]string{"video/x-m4v": string(v1alpha1.MimeMP4)}

// Probe examines a file of this size that was declared to be of this type. The
// error is a *Problem if the file is at fault; any other is from reading it.
func Probe(r io.ReaderAt, size int64, declared string) (Facts, error) {
	if size <= 0 {
		return Facts{}, damaged("The file is empty.")
	}
	file := newBlocks(r, size)
	facts, err := examine(file, size, declared)
	if failure := file.failure(); failure != nil && !errors.Is(failure, errTooMuch) {
		return Facts{}, failure
	} else if failure != nil {
		return Facts{}, damaged("The file is too intricate: what it is does not follow from its first %d MiB of structure. Export it again.", budget>>20)
	}
	if err != nil {
		return Facts{}, err
	}
	facts.MIMEType = declared
	return facts, nil
}

// examine does the work of Probe, but an error of reading may look like damage;
// the blocks remember such errors.
func examine(file *blocks, size int64, declared string) (Facts, error) {
	head := make([]byte, min(size, sniffed))
	if _, err := file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return Facts{}, err
	}
	found, _, _ := strings.Cut(mimetype.Detect(head).String(), ";")
	if same, ok := alike[found]; ok {
		found = same
	}
	if found != declared {
		return Facts{}, &Problem{
			Reason:  v1alpha1.ReasonWrongType,
			Message: fmt.Sprintf("The file was declared as %s, but its content is %s. Declare what it is, or convert it.", declared, named(found)),
		}
	}
	switch v1alpha1.MimeType(declared) {
	case v1alpha1.MimeMP4, v1alpha1.MimeQuickTime:
		return video(file, size)
	case v1alpha1.MimeJPEG, v1alpha1.MimePNG, v1alpha1.MimeWebP:
		return picture(file, size, v1alpha1.MimeType(declared))
	default:
		return Facts{}, &Problem{Reason: v1alpha1.ReasonWrongType, Message: fmt.Sprintf("Files of type %s cannot be posted.", declared)}
	}
}

// named is how a message calls a type.
func named(found string) string {
	if found == "application/octet-stream" {
		return "of no known type"
	}
	return found
}
