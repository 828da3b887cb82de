// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/test/sandboxtest"
)

// memoryFile is a file in memory, which platforms can also fetch.
type memoryFile struct {
	data []byte
	url  string
	// err is returned by its reads.
	err error
}

// Open implements platforms.Bytes.
func (h *memoryFile) Open(_ context.Context, offset, length int64) (io.ReadCloser, error) {
	if h.err != nil {
		return nil, h.err
	}
	return io.NopCloser(bytes.NewReader(h.data[offset : offset+length])), nil
}

// Address implements platforms.Bytes.
func (h *memoryFile) Address(context.Context, time.Duration) (string, error) { return h.url, h.err }

// file reads a sample from package probe's tests. pad lengthens it by at least that many bytes, using an MP4 box that
// may follow the video.
func file(t *testing.T, name string, mimeType v1alpha1.MimeType, pad int) platforms.File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "internal", "media", "probe", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if pad > 0 {
		data = binary.BigEndian.AppendUint32(data, uint32(8+pad))
		data = append(append(data, "free"...), make([]byte, pad)...)
	}
	h := &memoryFile{data: data}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", string(mimeType))
		_, _ = w.Write(h.data) // the platform may have closed the connection
	}))
	t.Cleanup(site.Close)
	h.url = site.URL + "/" + name
	out := platforms.File{Name: name, MIMEType: mimeType, Size: int64(len(data)), Width: 64, Height: 48, ETag: name, Bytes: h}
	if out.IsVideo() {
		out.Width, out.Height, out.Duration = videoWidth, videoHeight, 10*time.Second
	}
	return out
}

// videoWidth and videoHeight are the size of the sample video, which all platforms accept.
const videoWidth, videoHeight = 720, 1280

// post is a post with files. The type of the files determines the category.
type post struct {
	reason   string
	category v1alpha1.Category
	files    func(t *testing.T) []platforms.File
	// silent drops the text, as if the caption were only whitespace.
	silent bool
}

func posts() map[string]post {
	picture := func(t *testing.T) platforms.File { return file(t, "picture.jpg", v1alpha1.MimeJPEG, 0) }
	return map[string]post{
		"an image": {"the least", v1alpha1.CategoryImage, func(t *testing.T) []platforms.File { return []platforms.File{picture(t)} }, false},
		"images": {"their order is preserved", v1alpha1.CategoryImage, func(t *testing.T) []platforms.File {
			return []platforms.File{picture(t), file(t, "picture.jpg", v1alpha1.MimeJPEG, 0), picture(t)}
		}, false},
		"a video": {"the platform processes a video after its upload", v1alpha1.CategoryVideo, func(t *testing.T) []platforms.File {
			return []platforms.File{file(t, "tenseconds.mp4", v1alpha1.MimeMP4, 0)}
		}, false},
		"a long video": {"a long video is uploaded in several parts", v1alpha1.CategoryVideo, func(t *testing.T) []platforms.File {
			return []platforms.File{file(t, "tenseconds.mp4", v1alpha1.MimeMP4, 9<<20)}
		}, false},
	}
}

// media returns a job that publishes the given files.
func (f *fixture) media(t *testing.T, category v1alpha1.Category, files ...platforms.File) platforms.Job {
	t.Helper()
	job := f.post(t, category, "look at this")
	job.Content.Media = files
	return job
}

func hashes(files []platforms.File) []string {
	out := make([]string, len(files))
	for i := range files {
		h, _ := files[i].Bytes.(*memoryFile)
		sum := sha256.Sum256(h.data)
		out[i] = hex.EncodeToString(sum[:])
	}
	return out
}

// testMedia publishes files of every category that the platform delivers.
func (s *Suite) testMedia(t *testing.T) {
	all := posts()
	for _, name := range []string{"an image", "a video"} {
		alone := all[name]
		alone.reason, alone.silent = "the rules accept a blank caption with files, and it is omitted", true
		all[name+" without a text"] = alone
	}
	for name, tc := range all {
		t.Run(name, func(t *testing.T) {
			f, p := s.publisher(t)
			if !slices.Contains(p.Capabilities().Delivers, tc.category) {
				t.Skipf("%s does not support category %s", s.Name, tc.category)
			}
			files := tc.files(t)
			job := f.media(t, tc.category, files...)
			if tc.silent {
				job.Content.Text = ""
			}
			job = f.prepare(t, job)
			if got := f.published(t); len(got) > 0 {
				t.Fatalf("%s: preparing published %+v", tc.reason, got)
			}
			result := Publish(t, p, &job, waitALittle)
			if result.Outcome != platforms.Posted {
				t.Fatalf("%s: got %+v", tc.reason, result)
			}
			got := f.published(t)
			if len(got) != 1 || got[0].ID != result.ExternalID {
				t.Fatalf("%s: published %+v, want only %s", tc.reason, got, result.ExternalID)
			}
			var arrived []string
			for _, m := range got[0].Media {
				arrived = append(arrived, m.SHA256)
			}
			if diff := cmp.Diff(hashes(files), arrived); diff != "" {
				t.Errorf("%s: bytes (-want +got):\n%s", tc.reason, diff)
			}
			found, err := p.Lookup(t.Context(), job)
			if err != nil || found.Matches != 1 || found.ExternalID != result.ExternalID {
				t.Errorf("%s: looked up as %+v, %v", tc.reason, found, err)
			}
		})
	}
}

// Publish publishes a job. If the platform processes the call asynchronously, it polls the outcome up to maxPolls
// times, pausing after each poll. It stores the operation id in the job.
func Publish(t *testing.T, p platforms.Publisher, job *platforms.Job, pause func()) platforms.Result {
	t.Helper()
	result := p.Publish(t.Context(), *job)
	if result.Outcome != platforms.Accepted {
		return result
	}
	if job.OperationID = result.OperationID; job.OperationID == "" {
		t.Fatalf("got %+v; a publication in progress must have an id for lookups", result)
	}
	for range maxPolls {
		found, err := p.Lookup(t.Context(), *job)
		switch {
		case found.Refused != nil:
			return platforms.Result{Outcome: platforms.Refused, Err: found.Refused}
		case found.Matches == 1:
			return platforms.Result{Outcome: platforms.Posted, ExternalID: found.ExternalID, ExternalURL: found.ExternalURL, PostedAt: found.PostedAt}
		case recorder.ClassOf(err) != platforms.ClassTransient:
			t.Fatalf("looked up as %+v, %v; the outcome is unknown while the platform is processing", found, err)
		}
		pause()
	}
	return result
}

// maxPolls is the maximum number of lookups in Publish.
const maxPolls = 500

// waitALittle pauses for a moment on the real clock.
func waitALittle() { <-clock.RealClock{}.After(10 * time.Millisecond) }

// testMediaFaults makes each call before the visible call fail once, and retries as the caller would.
func (s *Suite) testMediaFaults(t *testing.T) {
	kinds := map[string]struct {
		fault sandboxtest.Fault
		class platforms.Class
	}{
		"trouble":       {sandboxtest.Fault{Kind: "status", Status: 503}, platforms.ClassTransient},
		"lost before":   {sandboxtest.Fault{Kind: "drop_before"}, platforms.ClassTransient},
		"lost after":    {sandboxtest.Fault{Kind: "drop_after"}, platforms.ClassTransient},
		"error after":   {sandboxtest.Fault{Kind: "error_after", Status: 500}, platforms.ClassTransient},
		"rate limited":  {sandboxtest.Fault{Kind: "rate_limit", RetryAfterS: 60}, platforms.ClassRateLimited},
		"token expired": {sandboxtest.Fault{Kind: "token_expired"}, s.endedClass()},
	}
	for what, tc := range posts() {
		for name, k := range kinds {
			for _, operation := range []string{"identity", "upload", "create", "status"} {
				t.Run(what+"/"+operation+"/"+name, func(t *testing.T) {
					f, p := s.publisher(t)
					preparer, ok := p.(platforms.Preparer)
					if !ok || !slices.Contains(p.Capabilities().Delivers, tc.category) || !preparer.Prepares(f.media(t, tc.category, tc.files(t)...).Content) {
						t.Skipf("%s prepares no category %s", s.Name, tc.category)
					}
					k.fault.Operation = operation
					f.fault(t, k.fault)
					job := f.media(t, tc.category, tc.files(t)...)
					_, err := preparer.Prepare(t.Context(), job)
					if err != nil && err.Class != k.class {
						t.Errorf("class %s, want %s: %v (%v)", err.Class, k.class, err, err.Err)
					}
					f.checkNoSecrets(t, asError(err))
					f.clearFaults(t)
					job = f.prepare(t, f.resumed(job))
					if got := Publish(t, p, &job, waitALittle); got.Outcome != platforms.Posted {
						t.Errorf("got %+v", got)
					}
					if got := f.published(t); len(got) != 1 || len(got[0].Media) != len(job.Content.Media) {
						t.Errorf("published %+v", got)
					}
				})
			}
		}
	}
	t.Run("a file that was changed", func(t *testing.T) {
		f, p := s.publisher(t)
		for _, category := range s.simplest(p) {
			job := f.post(t, category, "look at this")
			preparer, ok := p.(platforms.Preparer)
			if !ok || len(job.Content.Media) == 0 || !preparer.Prepares(job.Content) {
				continue
			}
			job.Content.Media[0].Bytes = &memoryFile{err: platforms.ErrFileChanged}
			checkpoint, err := preparer.Prepare(t.Context(), job)
			if err == nil { // small, and sent as a whole with the visible call
				err = p.Publish(t.Context(), f.withSecret(job, checkpoint)).Err
			}
			if recorder.ClassOf(err) != platforms.ClassPermanent || len(f.published(t)) > 0 {
				t.Errorf("%s: got %v; only the verified bytes may be published", category, err)
			}
		}
	})
}

// testThumbnail publishes a video with a chosen thumbnail. Regardless of what happens to the thumbnail, the video is
// published once, and failures are reported.
func (s *Suite) testThumbnail(t *testing.T) {
	tests := map[string]struct {
		reason string
		fault  sandboxtest.Fault
		noted  bool
	}{
		"set":         {"the thumbnail is accepted", sandboxtest.Fault{}, false},
		"after all":   {"a temporary failure is retried", sandboxtest.Fault{Kind: "status", Status: 503}, false},
		"not allowed": {"the account may not set a thumbnail", sandboxtest.Fault{Kind: "status", Status: 403, Times: 9}, true},
		"not at all":  {"a permanent failure is reported", sandboxtest.Fault{Kind: "drop_before", Times: 9}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, p := s.publisher(t)
			if !p.Capabilities().TakesThumbnail {
				t.Skipf("%s does not accept pictures", s.Name)
			}
			job := f.post(t, v1alpha1.CategoryVideo, "look at this")
			picture := file(t, "picture.jpg", v1alpha1.MimeJPEG, 0)
			moment := 500 * time.Millisecond
			job.Content.ThumbnailAt, job.Content.Thumbnail = &moment, &picture
			job = f.prepare(t, job)
			before := f.arrived(t, "upload")
			if tc.fault.Kind != "" {
				tc.fault.Operation = "upload"
				f.fault(t, tc.fault)
			}
			got := p.Publish(t.Context(), job)
			if got.Outcome != platforms.Posted || got.Err != nil || (got.Note != "") != tc.noted || f.arrived(t, "upload") == before {
				t.Errorf("%s: got %+v (%v)", tc.reason, got, got.Err)
			}
			f.checkNoSecrets(t, errors.New(got.Note))
			f.checkLookup(t, p, job, 1)
		})
	}
}
