// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// inMemory is a file in memory.
type inMemory []byte

func (m inMemory) Open(_ context.Context, offset, length int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(m[offset : offset+length])), nil
}

func (inMemory) Address(context.Context, time.Duration) (string, error) {
	return "", errors.New("YouTube fetches nothing")
}

// away is a file whose reads fail.
type away struct{ err error }

func (a away) Open(context.Context, int64, int64) (io.ReadCloser, error) { return nil, a.err }
func (a away) Address(context.Context, time.Duration) (string, error)    { return "", a.err }

// asked is one request.
type asked struct {
	// Line contains the method and the path, and Span is the Content-Range.
	Line, Span string
	Length     int64
}

// google is a server that sends a sequence of responses.
type google struct {
	*httptest.Server

	mu      sync.Mutex
	answers []http.HandlerFunc
	seen    []asked
	headers []http.Header
	bodies  []string
}

func newGoogle(t *testing.T, answers ...http.HandlerFunc) (*Platform, *google) {
	t.Helper()
	g := &google{answers: answers}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("cannot read the request: %v", err)
		}
		g.mu.Lock()
		g.seen = append(g.seen, asked{Line: r.Method + " " + r.URL.RequestURI(), Span: r.Header.Get("Content-Range"), Length: int64(len(body))})
		g.headers, g.bodies = append(g.headers, r.Header.Clone()), append(g.bodies, string(body))
		if len(g.answers) == 0 {
			t.Errorf("one request too many: %+v", g.seen[len(g.seen)-1])
			g.answers = []http.HandlerFunc{says(500, "")}
		}
		next := g.answers[0]
		g.answers = g.answers[1:]
		g.mu.Unlock()
		next(w, r)
	}))
	t.Cleanup(g.Close)
	p := New(Config{APIURL: g.URL, WebURL: "https://yt.example", Clock: recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)}}, transport.New(transport.Options{}))
	return p, g
}

// requests returns the requests received so far.
func (g *google) requests() ([]asked, []http.Header) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.seen), slices.Clone(g.headers)
}

// did fails the test unless the server received exactly these requests.
func (g *google) did(t *testing.T, want ...asked) {
	t.Helper()
	seen, _ := g.requests()
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// begun responds to the request that starts a session.
func begun(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Location", "http://"+r.Host+"/session?upload_id=s3cr3t-session")
}

// goOn responds that the given number of bytes is stored and more are expected.
func goOn(bytes int64) http.HandlerFunc {
	if bytes == 0 {
		return says(308, "")
	}
	return says(308, "", "Range", fmt.Sprintf("bytes=0-%d", bytes-1))
}

const published = `{"kind":"youtube#video","id":"AbCdEfGhIjK","snippet":{"publishedAt":"2026-11-20T12:00:01Z"},"status":{"privacyStatus":"public"}}`

// videoJob returns a job for a video of the given size in bytes.
func videoJob(size int) platforms.Job {
	return platforms.Job{
		Account: platforms.Account{ID: "UC1", Token: platforms.Token{Access: "access-t0ken"}},
		Content: platforms.Content{
			Category: v1alpha1.CategoryVideo, Title: "Release 1.4", Text: "What changed & why",
			Media: []platforms.File{{Name: "film.mp4", MIMEType: v1alpha1.MimeMP4, Size: int64(size), Bytes: inMemory(make([]byte, size))}},
		},
		SearchFrom: noon,
	}
}

// upTo returns a video job with all but the last part uploaded to the server.
func (g *google) upTo(size int, last int64) platforms.Job {
	job := videoJob(size)
	s := session{address: g.URL + "/session?upload_id=s3cr3t-session", last: last}
	job.Checkpoint, job.Secret = s.checkpoint(), s.secret()
	return job
}

const (
	beginLine = "POST /upload/youtube/v3/videos?uploadType=resumable&part=snippet,status"
	putLine   = "PUT /session?upload_id=s3cr3t-session"
)

func TestStart(t *testing.T) {
	p, g := newGoogle(t, begun)
	job := videoJob(100)
	var notes []string
	job.StoreCheckpoint = func(_ context.Context, checkpoint, secret string) error {
		notes = append(notes, checkpoint, secret)
		return nil
	}
	checkpoint, failure := p.Prepare(t.Context(), job)
	if failure != nil || checkpoint == "" {
		t.Fatalf("got %q, %v", checkpoint, failure)
	}
	body := `{"snippet":{"title":"Release 1.4","description":"What changed & why"},"status":{"privacyStatus":"public"}}` + "\n"
	g.did(t, asked{Line: beginLine, Length: int64(len(body))})
	if g.bodies[0] != body {
		t.Errorf("the video is described as %s", g.bodies[0])
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer access-t0ken", "Content-Type": "application/json; charset=UTF-8",
		"X-Upload-Content-Length": "100", "X-Upload-Content-Type": "video/mp4",
	} {
		if got := g.headers[0].Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if diff := cmp.Diff([]string{checkpoint, "0 " + g.URL + "/session?upload_id=s3cr3t-session"}, notes); diff != "" {
		t.Errorf("checkpoints (-want +got):\n%s", diff)
	}
}

// TestUpload runs uploads of 4 MiB + 256 KiB + 1 byte.
func TestUpload(t *testing.T) {
	const size = chunk + unit + 1
	at := func(first, last int64) asked {
		return asked{Line: putLine, Span: fmt.Sprintf("bytes %d-%d/%d", first, last, size), Length: last - first + 1}
	}
	query := asked{Line: putLine, Span: fmt.Sprintf("bytes */%d", size)}
	begin := asked{Line: beginLine, Length: 107}
	tests := map[string]struct {
		reason  string
		answers []http.HandlerFunc
		// earlier reports whether a session and its secret exist.
		earlier bool
		want    []asked
		class   platforms.Class
		// last is the last part's offset in the final checkpoint.
		last int64
	}{
		"whole": {
			"all parts but the last have multiples of 256 KiB",
			[]http.HandlerFunc{begun, goOn(chunk), goOn(chunk + unit)},
			false,
			[]asked{begin, at(0, chunk-1), at(chunk, chunk+unit-1)},
			"", chunk + unit,
		},
		"continues": {
			"stored bytes are not sent again",
			[]http.HandlerFunc{goOn(chunk), goOn(chunk + unit)},
			true,
			[]asked{query, at(chunk, chunk+unit-1)},
			"", chunk + unit,
		},
		"no stored bytes": {
			"YouTube may have stored less than was sent",
			[]http.HandlerFunc{goOn(0), goOn(chunk), goOn(chunk + unit)},
			true,
			[]asked{query, at(0, chunk-1), at(chunk, chunk+unit-1)},
			"", chunk + unit,
		},
		"fewer stored bytes": {
			"the upload continues after the stored bytes of a part, and the last part starts elsewhere",
			[]http.HandlerFunc{begun, goOn(100), goOn(chunk + 100)},
			false,
			[]asked{begin, at(0, chunk-1), at(100, chunk+99)},
			"", chunk + 100,
		},
		"part of the last": {
			"part of the visible call may have been stored", []http.HandlerFunc{goOn(size - 1)}, true, []asked{query}, "", size - 1,
		},
		"lost response": {
			"the session is queried for a part's outcome",
			[]http.HandlerFunc{begun, hangUp, goOn(chunk), goOn(chunk + unit)},
			false,
			[]asked{begin, at(0, chunk-1), query, at(chunk, chunk+unit-1)},
			"", chunk + unit,
		},
		"outage": {
			"the same after an outage",
			[]http.HandlerFunc{begun, fails(503, "backendError"), goOn(0), goOn(chunk), goOn(chunk + unit)},
			false,
			[]asked{begin, at(0, chunk-1), query, at(0, chunk-1), at(chunk, chunk+unit-1)},
			"", chunk + unit,
		},
		"another uploads as well": {
			"a part with a wrong position is rejected, which is not the video's fault",
			[]http.HandlerFunc{goOn(0), fails(400, "badRequest"), goOn(chunk), goOn(chunk + unit)},
			true,
			[]asked{query, at(0, chunk-1), query, at(chunk, chunk+unit-1)},
			"", chunk + unit,
		},
		"outage without end": {
			"the caller waits before it continues",
			[]http.HandlerFunc{begun, fails(503, "backendError"), fails(503, "backendError")},
			false,
			[]asked{begin, at(0, chunk-1), query},
			platforms.ClassTransient, chunk + unit,
		},
		"stuck": {
			"the retries of a part are limited",
			[]http.HandlerFunc{begun, goOn(0), goOn(0), goOn(0)},
			false,
			[]asked{begin, at(0, chunk-1), at(0, chunk-1), at(0, chunk-1)},
			platforms.ClassTransient, chunk + unit,
		},
		"repeatedly loses bytes": {
			"a server that repeatedly drops bytes would get the file forever",
			[]http.HandlerFunc{begun, goOn(chunk), goOn(0), goOn(chunk), goOn(0), goOn(chunk), goOn(0)},
			false,
			[]asked{begin, at(0, chunk-1), at(chunk, chunk+unit-1), at(0, chunk-1), at(chunk, chunk+unit-1), at(0, chunk-1), at(chunk, chunk+unit-1)},
			platforms.ClassTransient, chunk + unit,
		},
		"gone": {
			"a dropped session is replaced",
			[]http.HandlerFunc{fails(404, "notFound"), begun, goOn(chunk), goOn(chunk + unit)},
			true,
			[]asked{query, begin, at(0, chunk-1), at(chunk, chunk+unit-1)},
			"", chunk + unit,
		},
		"dropped during the upload": {
			"a session may end during the upload",
			[]http.HandlerFunc{begun, says(410, ""), begun, goOn(chunk), goOn(chunk + unit)},
			false,
			[]asked{begin, at(0, chunk-1), begin, at(0, chunk-1), at(chunk, chunk+unit-1)},
			"", chunk + unit,
		},
		"always deleted": {
			"sessions are not repeated indefinitely: each one costs quota",
			[]http.HandlerFunc{begun, says(410, ""), begun, says(404, "")},
			false,
			[]asked{begin, at(0, chunk-1), begin, at(0, chunk-1)},
			platforms.ClassTransient, chunk + unit,
		},
		"visible": {
			"a video that may be public must not be sent again",
			[]http.HandlerFunc{says(200, published)},
			true,
			[]asked{query},
			platforms.ClassDuplicate, 0,
		},
		"all there": {"complete, and possibly public", []http.HandlerFunc{goOn(size)}, true, []asked{query}, platforms.ClassDuplicate, 0},
		"redirect": {
			"a redirect is not YouTube's request to continue",
			[]http.HandlerFunc{says(308, "", "Location", "/elsewhere")},
			true,
			[]asked{query},
			platforms.ClassUnknown, 0,
		},
		"odd range": {
			"an invalid range is not reliable",
			[]http.HandlerFunc{says(308, "", "Range", "bytes=7-9")},
			true,
			[]asked{query},
			platforms.ClassUnknown, 0,
		},
		"too much": {"a range beyond the file's end is not reliable", []http.HandlerFunc{goOn(size + 1)}, true, []asked{query}, platforms.ClassUnknown, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, g := newGoogle(t, tc.answers...)
			job := videoJob(size)
			if tc.earlier {
				job = g.upTo(size, chunk+unit)
			}
			recorded, secret := job.Checkpoint, job.Secret
			job.StoreCheckpoint = func(_ context.Context, c, s string) error { recorded, secret = c, s; return nil }
			checkpoint, failure := p.Prepare(t.Context(), job)
			if class(failure) != tc.class {
				t.Fatalf("%s: got %q, %v", tc.reason, checkpoint, failure)
			}
			if failure == nil && checkpoint != recorded || tc.class == platforms.ClassDuplicate && checkpoint != job.Checkpoint {
				t.Errorf("%s: the checkpoint is %q, the stored one %q", tc.reason, checkpoint, recorded)
			}
			if last := fmt.Sprint(tc.last, " "); tc.last != 0 && !strings.HasPrefix(secret, last) {
				t.Errorf("%s: the last part starts at %s, not %s", tc.reason, strings.Fields(secret)[0], last)
			}
			g.did(t, tc.want...)
			if failure != nil && strings.Contains(fmt.Sprintf("%v %+v", failure, failure.Err), "s3cr3t") {
				t.Errorf("the error contains the session's URL: %v (%v)", failure, failure.Err)
			}
		})
	}
}

func TestCheckpointCannotBeStored(t *testing.T) {
	p, g := newGoogle(t, begun)
	job := videoJob(chunk * 2)
	job.StoreCheckpoint = func(context.Context, string, string) error { return errors.New("no") }
	if _, failure := p.Prepare(t.Context(), job); class(failure) != platforms.ClassTransient {
		t.Errorf("got %v, want no upload to a session that would be lost", failure)
	}
	g.did(t, asked{Line: beginLine, Length: 107})
}

// TestProjectQuota makes Google return both forms of the error for a project's exhausted daily upload quota. No channel
// of the project can upload then.
func TestProjectQuota(t *testing.T) {
	const (
		day    = "Quota exceeded for quota metric 'Video Uploads' and limit 'Video Uploads per day' of service 'youtube.googleapis.com' for consumer 'project_number:1'."
		minute = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'youtube.googleapis.com' for consumer 'project_number:1'."
	)
	midnight := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		reason        string
		status        int
		inside, whole string
		quota         bool
	}{
		"429":    {"the project's uploads of a day are used up", 429, day, day, true},
		"403":    {"the same with the status of older quotas", 403, day, day, true},
		"entry":  {"only the entry contains the reason", 429, day, "", true},
		"whole":  {"only the enclosing error contains the reason", 429, "", day, true},
		"minute": {"a limit per minute is a rate limit", 429, minute, minute, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			body := fmt.Sprintf(`{"error":{"code":%d,"message":%q,"errors":[{"message":%q,"domain":"global","reason":"rateLimitExceeded"}],"status":"RESOURCE_EXHAUSTED"}}`,
				tc.status, tc.whole, tc.inside)
			p, _ := newGoogle(t, says(tc.status, body))
			_, got := p.Prepare(t.Context(), videoJob(10))
			want, at := platforms.ClassRateLimited, time.Time{}
			if tc.quota {
				want, at = platforms.ClassQuota, midnight
			}
			if class(got) != want || !got.RetryAt.Equal(at) || got.AppWide != tc.quota {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
}
