// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// ErrFileChanged is returned by reads of a File that was overwritten or deleted after it was verified.
var ErrFileChanged = errors.New("the file is not the one that was verified")

// FileAtFault is returned by reads of a File that can never be sent unchanged.
type FileAtFault struct {
	// Problem follows the file's name in a message. Remedy is what the user can do about it.
	Problem, Remedy string
}

func (e *FileAtFault) Error() string { return "the file " + e.Problem }

// File is one of a post's media files. Its content remains in the store and is never completely held in memory.
type File struct {
	// Name is the file name given by the user, for messages.
	Name string
	// MIMEType is the detected type.
	MIMEType v1alpha1.MimeType
	// Size is in bytes.
	Size int64
	// Width and Height are the size as displayed, in pixels.
	Width, Height int
	// Duration is a video's playing time; zero for an image.
	Duration time.Duration
	// FrameRate is a video's average frame rate, or zero if unknown. FrameRateVaries reports whether the intervals
	// between frames differ.
	FrameRate       float64
	FrameRateVaries bool
	// VideoCodec and AudioCodec are a video's codecs, by their ffmpeg names; empty if unknown.
	VideoCodec, AudioCodec string
	// Turned reports whether the metadata rotates or mirrors the image for display.
	Turned bool
	// MultiPicture reports whether a JPEG contains more than one image, such as another view or the gain map of an
	// HDR image.
	MultiPicture bool
	// Unconvertible is the reason an image cannot be converted, phrased to follow "the file …", or "" if it can be.
	Unconvertible string
	// AltText describes the image or video for people who cannot see it: at most v1alpha1.MaxAltText characters, or ""
	// if there is no description. YouTube and TikTok do not accept one.
	AltText string
	// FocalPoint is the most important point, which platforms with cropped previews keep visible; nil if there is none.
	FocalPoint *v1alpha1.FocalPoint
	// ETag identifies the verified bytes.
	ETag string
	// Bytes reads the content.
	Bytes Bytes
}

// FileOf returns the File of a Media, without its Bytes.
func FileOf(m *v1alpha1.Media) File {
	const milli = 1000
	return File{
		Name: m.Spec.FileName, MIMEType: m.Spec.MimeType, Size: m.Status.SizeBytes,
		Width: int(m.Status.Width), Height: int(m.Status.Height),
		Duration:  time.Duration(m.Status.DurationMillis) * time.Millisecond,
		FrameRate: float64(m.Status.FrameRateMilliHertz) / milli, FrameRateVaries: m.Status.FrameRateVaries,
		VideoCodec: m.Status.VideoCodec, AudioCodec: m.Status.AudioCodec,
		Turned: m.Status.Turned, MultiPicture: m.Status.MultiPicture, Unconvertible: m.Status.Unconvertible,
		AltText: m.Spec.AltText, ETag: m.Status.ETag,
	}
}

// IsVideo reports whether the file is a video.
func (f *File) IsVideo() bool { return strings.HasPrefix(string(f.MIMEType), "video/") }

// Accepts reports whether the platform accepts an image unchanged. It returns true for videos, and for missing files,
// whose properties are unknown. No platform documents that it applies the rotation in the metadata, and a platform that
// drops the metadata first would show the image on its side, so a rotated image is converted if possible.
func (l ImageLimits) Accepts(f *File) bool {
	if f.IsVideo() || f.MIMEType == "" {
		return true
	}
	if l.Types != nil && !slices.Contains(l.Types, f.MIMEType) || l.MaxBytes > 0 && f.Size > l.MaxBytes {
		return false
	}
	if l.OnePicture && f.MultiPicture || f.Turned && f.Unconvertible == "" {
		return false
	}
	if f.Width == 0 || f.Height == 0 {
		return true
	}
	l = l.For(f)
	aspect := float64(f.Width) / float64(f.Height)
	return !(l.MaxWidth > 0 && f.Width > l.MaxWidth || l.MaxHeight > 0 && f.Height > l.MaxHeight ||
		l.MinAspect > 0 && aspect < l.MinAspect || l.MaxAspect > 0 && aspect > l.MaxAspect)
}

// For returns the limits for one image. With EitherWay, the bounds are swapped to match the image's orientation. If the
// image exceeds MaxPixels, the bounds are lowered to a size of the same shape that does not.
func (l ImageLimits) For(f *File) ImageLimits {
	if l.EitherWay && f.Width != f.Height && (f.Width > f.Height) != (l.MaxWidth > l.MaxHeight) {
		l.MaxWidth, l.MaxHeight = l.MaxHeight, l.MaxWidth
	}
	if has := int64(f.Width) * int64(f.Height); l.MaxPixels > 0 && has > l.MaxPixels {
		scale := math.Sqrt(float64(l.MaxPixels) / float64(has))
		width, height := max(int(float64(f.Width)*scale), 1), max(int(float64(f.Height)*scale), 1)
		l.MaxWidth, l.MaxHeight = lower(l.MaxWidth, width), lower(l.MaxHeight, height)
	}
	return l
}

// lower returns the lower of a bound and a size. A bound of zero means no bound.
func lower(bound, size int) int {
	if bound == 0 {
		return size
	}
	return min(bound, size)
}

// Unreadable converts an error from Bytes.Open or Bytes.Address into an Error for the user.
func (f *File) Unreadable(err error) *Error {
	if errors.Is(err, ErrFileChanged) {
		return Errorf(ClassPermanent, "the file %q is no longer the one that was checked: it was overwritten or deleted", f.Name).
			Advise("upload it again and make a new post").Because(err)
	}
	if fault, ok := errors.AsType[*FileAtFault](err); ok {
		return Errorf(ClassPermanent, "the file %q %s", f.Name, fault.Problem).Advise(fault.Remedy).Because(err)
	}
	return Errorf(ClassTransient, "the file %q cannot be read in the media store", f.Name).Because(err)
}

// FileIDs returns the platform's ids of the job's files from a checkpoint made by JoinFileIDs, or nil if the checkpoint
// is empty or does not match the job.
func (j *Job) FileIDs(valid func(id string) bool) []string {
	if ids := splitIDs(j.Checkpoint, valid); len(ids) == len(j.Content.Media) {
		return ids
	}
	return nil
}

func splitIDs(list string, valid func(id string) bool) []string {
	ids := strings.Split(list, ",")
	if list == "" || slices.ContainsFunc(ids, func(id string) bool { return !valid(id) }) {
		return nil
	}
	return ids
}

// JoinFileIDs returns the checkpoint that holds the ids of all files, once all are uploaded.
func JoinFileIDs(ids []string) string { return strings.Join(ids, ",") }

// partIDs is the prefix of a checkpoint that holds only the ids of the first files.
const partIDs = "items:"

// PartIDs returns the platform's ids of the files uploaded so far from a checkpoint made by JoinPartIDs, or nil if the
// checkpoint is empty or does not match the job.
func (j *Job) PartIDs(valid func(id string) bool) []string {
	list, isPart := strings.CutPrefix(j.Checkpoint, partIDs)
	if ids := splitIDs(list, valid); isPart && len(ids) <= len(j.Content.Media) {
		return ids
	}
	return nil
}

// JoinPartIDs returns the checkpoint that holds the ids of the files uploaded so far.
func JoinPartIDs(ids []string) string { return partIDs + JoinFileIDs(ids) }

// Bytes reads the content of one file. Its methods are safe for concurrent use.
type Bytes interface {
	// Open returns a reader for length bytes starting at offset. The bytes are streamed, and the context bounds the
	// reads. Reads fail with ErrFileChanged if the file is not the verified one, and with *FileAtFault if the file must
	// be replaced.
	Open(ctx context.Context, offset, length int64) (io.ReadCloser, error)

	// Address returns a URL that serves the file without authentication for the given time, for platforms that fetch
	// files themselves.
	Address(ctx context.Context, valid time.Duration) (string, error)
}
