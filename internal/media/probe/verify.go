// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/store"
)

// FileReader reads files; *store.Store implements it.
type FileReader interface {
	Stat(ctx context.Context, key string) (store.Object, error)
	ReaderAt(ctx context.Context, key, etag string, size int64) io.ReaderAt
}

// Verifier examines uploaded files.
type Verifier struct {
	Store FileReader
	Clock clock.PassiveClock
	// Unconvertible returns the reason an image cannot be converted for a platform that does not accept it, phrased to
	// follow "the file", or "" if it can be (rendition.Unconvertible). A non-nil error means that reading the image
	// failed. If Unconvertible is nil, this is not checked.
	Unconvertible func(r io.ReaderAt, size int64, mimeType string) (string, error)
}

// maxAttempts limits how often a file that keeps being overwritten is examined.
const maxAttempts = 3

// Overwritten is the state of a Media whose file cannot be examined because its client keeps overwriting it. That ends
// when the upload URL expires, at the latest.
func Overwritten() conditions.Summary {
	return conditions.Summary{
		Reason:   v1alpha1.ReasonBeingOverwritten,
		Message:  "The file is overwritten while it is examined. Complete one upload; the manager then examines it again.",
		Progress: conditions.Underway,
	}
}

// Verify examines a Media's file and returns the resulting status, with its conditions: uploaded, or rejected with a
// reason. It does not modify the Media or the file. The error is store.ErrNotFound if there is no file, and
// store.ErrChanged if the file was overwritten during each attempt (see Overwritten); any other comes from the store.
func (v *Verifier) Verify(ctx context.Context, m *v1alpha1.Media) (v1alpha1.MediaStatus, error) {
	var err error
	for range maxAttempts {
		var status v1alpha1.MediaStatus
		status, err = v.verifyOnce(ctx, m)
		if !errors.Is(err, store.ErrChanged) {
			return status, err
		}
	}
	return v1alpha1.MediaStatus{}, fmt.Errorf("the file is overwritten again and again: %w", err)
}

func (v *Verifier) verifyOnce(ctx context.Context, m *v1alpha1.Media) (v1alpha1.MediaStatus, error) {
	object, err := v.Store.Stat(ctx, store.Key(m))
	if err != nil {
		return v1alpha1.MediaStatus{}, err
	}
	// Many small parts are read. This limits the total time that they take.
	ctx, cancel := context.WithTimeout(ctx, store.TimeoutFor(object.Size))
	defer cancel()
	facts, err := v.examine(ctx, m, object)
	var problem *InvalidFileError
	if err != nil && !errors.As(err, &problem) {
		return v1alpha1.MediaStatus{}, err
	}
	status := *m.Status.DeepCopy()
	status.ObservedGeneration = m.Generation
	status.SizeBytes = object.Size
	status.UploadURL, status.UploadURLExpiresAt = "", nil
	summary := conditions.Summary{Ready: true, Reason: v1alpha1.ReasonUploaded, Message: "The file was verified and can be posted.", Progress: conditions.Settled}
	if problem != nil {
		status.Phase = v1alpha1.MediaRejected
		summary = conditions.Summary{Reason: problem.Reason, Message: problem.Message, Progress: conditions.Stuck}
	} else {
		status.Phase, status.ETag = v1alpha1.MediaUploaded, object.ETag
		facts.record(&status)
	}
	conditions.Apply(&status.Conditions, summary, m.Generation, v.Clock.Now())
	return status, nil
}

func (v *Verifier) examine(ctx context.Context, m *v1alpha1.Media, object store.Object) (Facts, error) {
	limit, kind := int64(v1alpha1.MaxImageBytes), "an image"
	if strings.HasPrefix(string(m.Spec.MimeType), "video/") {
		limit, kind = v1alpha1.MaxVideoBytes, "a video"
	}
	wrong := func(format string, args ...any) (Facts, error) {
		return Facts{}, &InvalidFileError{Reason: v1alpha1.ReasonWrongSize, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case object.Size > limit:
		return wrong("The file has %d bytes; %s may have at most %d. Upload a smaller one.", object.Size, kind, limit)
	case m.Spec.SizeBytes != 0 && m.Spec.SizeBytes != object.Size:
		return wrong("The file has %d bytes, but %d were declared. Declare the right size, and upload the whole file.", object.Size, m.Spec.SizeBytes)
	}
	file, mimeType := v.Store.ReaderAt(ctx, object.Key, object.ETag, object.Size), string(m.Spec.MimeType)
	facts, err := Probe(file, object.Size, mimeType)
	if err == nil && v.Unconvertible != nil && strings.HasPrefix(mimeType, "image/") {
		facts.Unconvertible, err = v.Unconvertible(file, object.Size, mimeType)
	}
	return facts, err
}

func (facts Facts) record(status *v1alpha1.MediaStatus) {
	status.Width, status.Height, status.DurationMillis = facts.Width, facts.Height, facts.Duration.Milliseconds()
	const milli = 1000
	status.FrameRateMilliHertz = int32(math.Round(min(facts.FrameRate*milli, math.MaxInt32)))
	status.FrameRateVaries = facts.FrameRateVaries
	status.VideoCodec, status.AudioCodec = facts.VideoCodec, facts.AudioCodec
	status.Turned, status.MultiPicture = facts.Turned, facts.MultiPicture
	status.Animated, status.Unconvertible = facts.Animated, facts.Unconvertible
}
