// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// errAway is the error from a store that becomes unavailable in the middle of a file.
var errAway = errors.New("the store is unavailable")

// metered counts the bytes read from a file, and fails after a given number of them.
type metered struct {
	*memoryFile
	read, until atomic.Int64
}

// Open implements platforms.Bytes.
func (m *metered) Open(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
	content, err := m.memoryFile.Open(ctx, offset, length)
	if err != nil || m.read.Load() >= m.until.Load() {
		return nil, errors.Join(err, errAway)
	}
	return &meteredReader{ReadCloser: content, m: m}, nil
}

type meteredReader struct {
	io.ReadCloser
	m *metered
}

func (r *meteredReader) Read(p []byte) (int, error) {
	left := r.m.until.Load() - r.m.read.Load()
	if left <= 0 {
		return 0, errAway
	}
	n, err := r.ReadCloser.Read(p[:min(int64(len(p)), left)])
	r.m.read.Add(int64(n))
	return n, err
}

// testResume interrupts the upload of a long video and completes it in another process from the stored checkpoint.
// Neither preparation may make anything visible, bytes that have arrived must not be sent again if the platform
// supports resuming, and the published file must be identical.
func (s *Suite) testResume(t *testing.T) {
	const secretLost = "without the secret"
	tests := map[string]struct {
		reason string
		lose   func(job *platforms.Job)
		// resumes reports whether uploaded bytes can be reused.
		resumes bool
	}{
		"with the checkpoint": {"the later process continues the earlier one's work", func(*platforms.Job) {}, true},
		secretLost:            {"without the secret, the upload starts again", func(j *platforms.Job) { j.Secret = "" }, false},
		"without anything":    {"without both, the upload starts again", func(j *platforms.Job) { j.Checkpoint, j.Secret = "", "" }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, p := s.publisher(t)
			preparer, ok := p.(platforms.Preparer)
			if !ok || !p.Capabilities().CanDeliver(v1alpha1.CategoryVideo) {
				t.Skipf("%s prepares no videos", s.Name)
			}
			if name == secretLost && !p.Capabilities().SecretUploads {
				t.Skipf("uploads to %s have no secret", s.Name)
			}
			part := max(s.Resumes, 4<<20)
			film, bytes := videoIn(t, part)
			want := hashes([]platforms.File{{Bytes: bytes.memoryFile}})
			job := f.media(t, v1alpha1.CategoryVideo, film)

			checkpoint, err := preparer.Prepare(t.Context(), job)
			f.checkNoSecrets(t, asError(err))
			if err == nil && bytes.read.Load() == 0 {
				t.Skipf("%s fetches files itself", s.Name)
			}
			if recorder.ClassOf(err) != platforms.ClassTransient {
				t.Fatalf("a file that cannot be read now gives %q, %v", checkpoint, err)
			}
			bytes.read.Store(0)
			bytes.until.Store(1 << 60)
			job = f.resumed(job)
			tc.lose(&job)
			job = f.prepare(t, job)
			// The interrupted part may still be in transit. If the platform receives it only after the next
			// part, that part is sent twice.
			if n := bytes.read.Load(); tc.resumes && s.Resumes > 0 && n > film.Size-2*part {
				t.Errorf("%s: %d of %d bytes were sent, and %d had arrived before", tc.reason, n, film.Size, 3*part)
			}
			if got := f.published(t); len(got) > 0 {
				t.Fatalf("%s: preparing published %+v", tc.reason, got)
			}
			result := p.Publish(t.Context(), job)
			f.checkNoSecrets(t, asError(result.Err))
			got := f.published(t)
			if result.Outcome != platforms.Posted || len(got) != 1 || len(got[0].Media) != 1 {
				t.Fatalf("%s: published %+v by %+v (%v)", tc.reason, got, result, result.Err)
			}
			if diff := cmp.Diff(want, []string{got[0].Media[0].SHA256}); diff != "" {
				t.Errorf("%s: bytes (-want +got):\n%s", tc.reason, diff)
			}
			f.checkLookup(t, p, job, 1)
		})
	}
}

// videoIn returns a long video of about five parts, of which three and a half can be read at first.
func videoIn(t *testing.T, part int64) (platforms.File, *metered) {
	t.Helper()
	film := file(t, "tenseconds.mp4", v1alpha1.MimeMP4, int(5*part))
	data, _ := film.Bytes.(*memoryFile)
	bytes := &metered{memoryFile: data}
	bytes.until.Store(3*part + part/2)
	film.Bytes = bytes
	return film, bytes
}
