// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// ErrFileChanged is returned by reading a File whose bytes are not those that
// were verified: it was overwritten, or is gone.
var ErrFileChanged = errors.New("the file is not the one that was verified")

// FileAtFault is returned by reading a File that cannot be sent as it is, now or later.
type FileAtFault struct {
	// Problem goes on from the name of the file, and Remedy is what a person can do.
	Problem, Remedy string
}

func (e *FileAtFault) Error() string { return "the file " + e.Problem }

// File is a media file of a post. Its bytes lie in the store and are never held
// in memory as a whole.
type File struct {
	// Name is what the person calls it, for messages.
	Name string
	// MIMEType is what it was found to be.
	MIMEType v1alpha1.MimeType
	// Size is how long it is, in bytes.
	Size int64
	// Width and Height are in pixels, as it is shown.
	Width, Height int
	// Duration is how long a video plays; zero for an image.
	Duration time.Duration
	// FrameRate is how many frames a video has in a second, on average, and
	// FrameRateVaries that they last for different times; zero if not known.
	FrameRate       float64
	FrameRateVaries bool
	// VideoCodec and AudioCodec are those of a video, as ffmpeg names them; empty if not
	// known.
	VideoCodec, AudioCodec string
	// Turned says that an image is to be turned or mirrored to be shown, by its metadata.
	Turned bool
	// MultiPicture says that a JPEG holds further pictures behind the first: another view,
	// or the map of an HDR picture.
	MultiPicture bool
	// Unconvertible continues "the file …" if no other version of an image can be made; ""
	// if one can.
	Unconvertible string
	// ETag marks the bytes that were verified.
	ETag string
	// Bytes is where they are.
	Bytes Bytes
}

// FileOf returns what is known of the file of a Media, without its Bytes.
func FileOf(m *v1alpha1.Media) File {
	const milli = 1000
	return File{
		Name: m.Spec.FileName, MIMEType: m.Spec.MimeType, Size: m.Status.SizeBytes,
		Width: int(m.Status.Width), Height: int(m.Status.Height),
		Duration:  time.Duration(m.Status.DurationMillis) * time.Millisecond,
		FrameRate: float64(m.Status.FrameRateMilliHertz) / milli, FrameRateVaries: m.Status.FrameRateVaries,
		VideoCodec: m.Status.VideoCodec, AudioCodec: m.Status.AudioCodec,
		Turned: m.Status.Turned, MultiPicture: m.Status.MultiPicture, Unconvertible: m.Status.Unconvertible,
		ETag: m.Status.ETag,
	}
}

// IsVideo reports whether the file is a video.
func (f *File) IsVideo() bool { return strings.HasPrefix(string(f.MIMEType), "video/") }

// Accepts reports whether the platform takes a file as it is, as far as images go.
// A video is none, and of a file that is missing nothing is known. No platform says in its
// documentation that it turns an image as its metadata says, and one that drops the
// metadata first would show it lying: such an image is turned, if that can be done.
func (l ImageLimits) Accepts(f *File) bool {
	if f.IsVideo() || f.MIMEType == "" {
		return true
	}
	if len(l.Types) > 0 && !slices.Contains(l.Types, f.MIMEType) || l.MaxBytes > 0 && f.Size > l.MaxBytes {
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

// For returns the limits as they hold for a picture: where EitherWay says so,
// the bounds are turned to lie or stand as it does.
func (l ImageLimits) For(f *File) ImageLimits {
	if l.EitherWay && f.Width != f.Height && (f.Width > f.Height) != (l.MaxWidth > l.MaxHeight) {
		l.MaxWidth, l.MaxHeight = l.MaxHeight, l.MaxWidth
	}
	return l
}

// Unreadable says why the file could not be read while it was sent, or be given
// an address to be fetched from.
func (f *File) Unreadable(err error) *Error {
	if errors.Is(err, ErrFileChanged) {
		return Errorf(ClassPermanent, "the file %q is not the one that was checked any more: it was overwritten or deleted", f.Name).
			Advise("upload it again and make a new post").Because(err)
	}
	if fault, ok := errors.AsType[*FileAtFault](err); ok {
		return Errorf(ClassPermanent, "the file %q %s", f.Name, fault.Problem).Advise(fault.Remedy).Because(err)
	}
	return Errorf(ClassTransient, "the file %q cannot be read in the media store", f.Name).Because(err)
}

// FileIDs are the ids under which a platform took the files of the job, one for
// each, from a checkpoint that JoinFileIDs made; nil if it names others, or none.
func (j *Job) FileIDs(valid func(id string) bool) []string {
	if ids := splitIDs(j.Checkpoint, valid); len(ids) == len(j.Content.Media) {
		return ids
	}
	return nil
}

// splitIDs reads a list of ids; nil if one of them is none.
func splitIDs(list string, valid func(id string) bool) []string {
	ids := strings.Split(list, ",")
	if list == "" || slices.ContainsFunc(ids, func(id string) bool { return !valid(id) }) {
		return nil
	}
	return ids
}

// JoinFileIDs makes the checkpoint of a job whose files were taken under ids.
func JoinFileIDs(ids []string) string { return strings.Join(ids, ",") }

// partIDs precedes, in a checkpoint, the ids of the first of several files.
const partIDs = "items:"

// PartIDs are the ids under which a platform has taken the first files of the job
// so far, from a checkpoint that JoinPartIDs made; nil if it names something else,
// or none.
func (j *Job) PartIDs(valid func(id string) bool) []string {
	list, isPart := strings.CutPrefix(j.Checkpoint, partIDs)
	if ids := splitIDs(list, valid); isPart && len(ids) <= len(j.Content.Media) {
		return ids
	}
	return nil
}

// JoinPartIDs makes the checkpoint of a job whose first files were taken under
// ids, and the others not yet.
func JoinPartIDs(ids []string) string { return partIDs + JoinFileIDs(ids) }

// Bytes gives access to those of one file. Its methods may be called from many
// goroutines at once.
type Bytes interface {
	// Open reads length bytes from an offset on, while they are asked for. The
	// context bounds the reading. Errors are ErrFileChanged where the file is
	// not the one that was verified, and a *FileAtFault where another is needed.
	Open(ctx context.Context, offset, length int64) (io.ReadCloser, error)

	// Address returns an address from which the file can be read, without a
	// login, for so long: for platforms that fetch files themselves.
	Address(ctx context.Context, valid time.Duration) (string, error)
}
