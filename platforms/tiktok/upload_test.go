// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

func TestCut(t *testing.T) {
	sizes := []int64{1, 2306, 4_999_999, 5_000_000, minChunk - 1, minChunk, 2*minChunk - 1, 2 * minChunk, 3*minChunk + 17, 64_000_001, 1 << 30, 4_000_000_000}
	for _, size := range sizes {
		c := cut(size)
		if c.count != size/c.chunk || c.count < 1 || c.count > 1000 {
			t.Errorf("%d bytes in %d chunks of %d; TikTok wants the size divided by the chunk, rounded down", size, c.count, c.chunk)
		}
		if size < minChunk && c.chunk != size || size >= minChunk && (c.chunk < minChunk || c.chunk > 64_000_000) {
			t.Errorf("%d bytes in chunks of %d; small files need one chunk, others 5 to 64 MB", size, c.chunk)
		}
		if last := size - c.last(); last < c.chunk || last > 2*minChunk {
			t.Errorf("of %d bytes, %d remain for the visible call", size, last)
		}
		end := int64(0)
		for range c.count {
			if c.end(end) != c.end(end+c.chunk/2) {
				t.Errorf("of %d bytes, a chunk that was cut off at %d is not completed", size, end)
			}
			end = c.end(end)
		}
		if end != size {
			t.Errorf("the chunks of %d bytes end at %d", size, end)
		}
	}
}

func TestUploadsThatCannotContinue(t *testing.T) {
	tests := map[string]struct {
		reason string
		lose   func(b *box)
		anew   bool
	}{
		"a long wait":    {"an upload URL is valid for almost an hour", func(b *box) { b.clock.Step(50 * time.Minute) }, false},
		"no secret":      {"without its address an upload is of no use", func(b *box) { b.secret = "" }, true},
		"another secret": {"an invalid secret", func(b *box) { b.secret = "https://upload.example/" }, true},
		"about to end":   {"the upload would expire during the visible call", func(b *box) { b.clock.Step(56 * time.Minute) }, true},
		"ended":          {"TikTok's addresses work for an hour", func(b *box) { b.clock.Step(61 * time.Minute) }, true},
		"unknown":        {"TikTok may forget a ticket", func(b *box) { b.checkpoint = "v_pub_file~v2-1.404" }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, nil)
			job := b.prepare(b.job(film(2*minChunk + 9)))
			first := job.Checkpoint
			tc.lose(b)
			job = b.prepare(job)
			if (job.Checkpoint != first) != tc.anew {
				t.Errorf("%s: %s after %s", tc.reason, job.Checkpoint, first)
			}
			b.posted(job)
		})
	}
}

// TestSilentStatus makes TikTok omit the number of received bytes while it is zero. This does not prove that there is
// no post, and the upload must continue under its ticket.
func TestSilentStatus(t *testing.T) {
	b := newBox(t, nil)
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		b.server.ServeHTTP(answer, r)
		body := strings.Replace(answer.Body.String(), `"uploaded_bytes":0`, `"reserved":0`, 1)
		w.WriteHeader(answer.Code)
		_, _ = w.Write([]byte(body)) // the client may have closed the connection
	}))
	defer silent.Close()
	b.tiktok = New(Config{APIURL: silent.URL + "/tiktok", WebURL: "https://web.example", Clock: b.clock}, transport.New(transport.Options{}))
	job := b.prepare(b.job(film(900)))
	first := job.Checkpoint
	if found, err := b.tiktok.Lookup(t.Context(), job); recorder.ClassOf(err) != platforms.ClassTransient {
		t.Errorf("found %+v, %v, want no proof without an id", found, err)
	}
	if job = b.prepare(job); job.Checkpoint != first || b.calls("create") != 1 {
		t.Errorf("the upload was started again, with %d calls", b.calls("create"))
	}
	b.posted(job)
	b.checkpoint, b.secret = "", ""
	job = b.prepare(b.job(film(901)))
	b.clock.Step(56 * time.Minute)
	if got, err := b.tiktok.Prepare(t.Context(), job); class(err) != platforms.ClassTransient || b.calls("create") != 2 {
		t.Errorf("got %q, %v; another ticket could show the video twice", got, err)
	}
}

// TestExpiredUploadURL publishes after the URL has expired. Nothing may be sent, and a new preparation must fix it.
func TestExpiredUploadURL(t *testing.T) {
	b := newBox(t, nil)
	job := b.prepare(b.job(film(2*minChunk + 9)))
	b.clock.Step(time.Hour)
	got := b.tiktok.Publish(t.Context(), job)
	if got.Outcome != platforms.NotSent || got.Err.Class != platforms.ClassTransient || b.calls("publish") != 0 {
		t.Errorf("got %+v", got)
	}
	b.posted(b.prepare(job))
}

// TestLostUploads makes TikTok refuse the bytes of an incomplete upload. The upload is restarted, because it can never
// become a post.
func TestLostUploads(t *testing.T) {
	tests := map[string]struct {
		reason, operation string
		status, size      int
		anew              bool
	}{
		"an address that has ended":   {"the address has expired", "publish", 403, 900, true},
		"an address that is unknown":  {"the address is unknown", "publish", 404, 900, true},
		"the last part":               {"TikTok rejects its size", "publish", 400, 900, true},
		"an earlier part":             {"an earlier part", "upload", 400, 2*minChunk + 9, true},
		"a limit":                     {"a limit is not evidence about the upload", "publish", 429, 900, false},
		"a range that is not in turn": {"TikTok has some bytes under this ticket", "publish", 416, 900, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, nil)
			b.fault(tc.operation, "status", tc.status)
			job := b.job(film(tc.size))
			id, failure := b.tiktok.Prepare(t.Context(), job)
			job.Checkpoint, job.Secret = id, b.secret
			if tc.operation == "publish" {
				failure = b.tiktok.Publish(t.Context(), job).Err
			}
			if class(failure) != platforms.ClassTransient && class(failure) != platforms.ClassRateLimited || strings.Contains(failure.Error(), "change the file") {
				t.Fatalf("%s: got %+v", tc.reason, failure)
			}
			first := job.Checkpoint
			if job = b.prepare(job); (job.Checkpoint != first) != tc.anew {
				t.Errorf("%s: %s after %s", tc.reason, job.Checkpoint, first)
			}
			b.posted(job)
		})
	}
}

// TestLostLastChunk interrupts the visible call. Regardless of how much of it arrived, the video is posted once.
func TestLostLastChunk(t *testing.T) {
	tests := map[string]struct {
		reason  string
		disturb func(b *box, file *content)
		posts   int
	}{
		"lost before its arrival": {"no byte was received", func(b *box, _ *content) { b.fault("publish", "drop_before", 0) }, 0},
		"by an outage":            {"an outage is not evidence", func(b *box, _ *content) { b.fault("publish", "status", 503) }, 0},
		"in the middle":           {"a stored part is not sent again", func(_ *box, f *content) { f.allow(3_000_000) }, 0},
		"on its return":           {"the response was lost, and the post is online", func(b *box, _ *content) { b.fault("publish", "drop_after", 0) }, 1},
		"by a gateway":            {"an error after the act", func(b *box, _ *content) { b.fault("publish", "error_after", 502) }, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, nil)
			file := film(2*minChunk + 9)
			held, _ := file.Bytes.(*content)
			job := b.prepare(b.job(file))
			first := job.Checkpoint
			tc.disturb(b, held)
			if got := b.tiktok.Publish(t.Context(), job); got.Outcome != platforms.Unknown {
				t.Fatalf("%s: got %+v", tc.reason, got)
			}
			held.allow(1 << 40)
			b.clock.Step(time.Second)
			found, err := b.tiktok.Lookup(t.Context(), job)
			if err != nil || found.Matches != tc.posts || found.Proof == (tc.posts > 0) || len(b.posts(file)) != tc.posts {
				t.Fatalf("%s: found %+v, %v", tc.reason, found, err)
			}
			if tc.posts > 0 {
				if _, err := b.tiktok.Prepare(t.Context(), job); class(err) != platforms.ClassDuplicate {
					t.Errorf("a published post was prepared again: %v", err)
				}
				return
			}
			job = b.prepare(job)
			got := b.tiktok.Publish(t.Context(), job)
			if got.Outcome == platforms.Refused && got.Err.Class == platforms.ClassTransient {
				// Part of the interrupted chunk arrived after the status call.
				job = b.prepare(job)
				got = b.tiktok.Publish(t.Context(), job)
			}
			if got.Outcome != platforms.Posted || job.Checkpoint != first {
				t.Errorf("got %+v as %s after %s", got, job.Checkpoint, first)
			}
			if n := len(b.posts(file)); n != 1 {
				t.Errorf("%d posts", n)
			}
		})
	}
}

// TestUnprepared publishes jobs that are not completely prepared. Nothing may be sent.
func TestUnprepared(t *testing.T) {
	tests := map[string]struct {
		reason string
		job    func(b *box) platforms.Job
	}{
		"video without its address": {"without a URL, the upload cannot continue", func(b *box) platforms.Job {
			job := b.prepare(b.job(film(900)))
			job.Secret = ""
			return job
		}},
		"photos": {"the account may have turned comments off, or used up its posts", func(b *box) platforms.Job {
			return b.job(photoFile(t, 640, 640))
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, nil)
			if got := b.tiktok.Publish(t.Context(), tc.job(b)); got.Outcome != platforms.NotSent || got.Err.Class != platforms.ClassTransient || b.calls("publish") != 0 {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
}

// wholeChunks is a TikTok server that refuses requests that start within a chunk. It has already received part of a
// chunk from an interrupted request.
type wholeChunks struct {
	mu      sync.Mutex
	status  int
	cut     parts
	arrived int64
	begun   []int64
}

func (c *wholeChunks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method == http.MethodPost {
		state := stateUploading
		if c.arrived == c.cut.size {
			state = stateInInbox
		}
		fmt.Fprintf(w, `{"data":{"status":%q,"uploaded_bytes":%d},"error":{"code":"ok"}}`, state, c.arrived)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // the client sends the whole body
	var first, last, size int64
	_, err := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size)
	c.begun = append(c.begun, first)
	switch {
	case err != nil || first != c.cut.start(first):
		w.WriteHeader(c.status)
	case last+1 == size:
		c.arrived = size
		w.WriteHeader(http.StatusCreated)
	default:
		c.arrived = last + 1
		w.WriteHeader(http.StatusPartialContent)
	}
}

// TestWholeChunks resumes an upload that was interrupted within a chunk, on a TikTok server that accepts only whole
// chunks.
func TestWholeChunks(t *testing.T) {
	file := film(3 * minChunk)
	pieces := cut(file.Size)
	early, late := pieces.chunk/2, pieces.last()+9
	for _, status := range []int{http.StatusRequestedRangeNotSatisfiable, http.StatusBadRequest} {
		for name, tc := range map[string]struct {
			reason  string
			arrived int64
			begun   []int64
		}{
			"early": {"the preparation repeats the chunk", early, []int64{early, 0, pieces.chunk, pieces.last()}},
			"last":  {"the visible call is repeated completely", late, []int64{late, pieces.last()}},
		} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				host := &wholeChunks{status: status, cut: pieces, arrived: tc.arrived}
				server := httptest.NewServer(host)
				defer server.Close()
				p := New(Config{APIURL: server.URL, Clock: clocktesting.NewFakeClock(noon)}, transport.New(transport.Options{}))
				secret, err := json.Marshal(session{Address: server.URL + "/upload", Ends: noon.Add(time.Hour), Chunk: pieces.chunk})
				if err != nil {
					t.Fatal(err)
				}
				job := platforms.Job{
					Checkpoint: "v_inbox_file~v2.1", Secret: string(secret),
					Content: platforms.Content{
						Category: v1alpha1.CategoryVideo, Media: []platforms.File{file}, TikTok: v1alpha1.TikTokOptions{Draft: true},
					},
				}
				job.StoreCheckpoint = func(_ context.Context, checkpoint, secret string) error {
					job.Checkpoint, job.Secret = checkpoint, secret
					return nil
				}
				var got platforms.Result
				for range 2 {
					if _, failure := p.Prepare(t.Context(), job); failure != nil {
						t.Fatalf("%s: %v", tc.reason, failure)
					}
					if got = p.Publish(t.Context(), job); got.Outcome == platforms.Posted {
						break
					}
					if got.Outcome != platforms.Refused || got.Err.Class != platforms.ClassTransient {
						t.Fatalf("%s: got %+v", tc.reason, got)
					}
				}
				if diff := cmp.Diff(tc.begun, host.begun); diff != "" || got.Outcome != platforms.Posted {
					t.Errorf("%s: %+v; ranges of requests (-want +got):\n%s", tc.reason, got, diff)
				}
			})
		}
	}
}

// TestSentTwice publishes a video twice. TikTok refuses the bytes, and its status shows that it already has them.
func TestSentTwice(t *testing.T) {
	b := newBox(t, nil)
	job := b.prepare(b.job(film(900)))
	first := b.tiktok.Publish(t.Context(), job)
	if second := b.tiktok.Publish(t.Context(), job); second.Outcome != platforms.Posted || second.ExternalID != first.ExternalID || len(b.posts(job.Content.Media...)) != 1 {
		t.Errorf("got %+v after %+v", second, first)
	}
}

// TestResume interrupts an upload after two chunks and resumes it in another process.
func TestResume(t *testing.T) {
	b := newBox(t, nil)
	file := film(4*minChunk + 1000)
	held, _ := file.Bytes.(*content)
	chunk := int(cut(file.Size).chunk)
	held.allow(2 * chunk)
	job := b.job(file)
	id, err := b.tiktok.Prepare(t.Context(), job)
	if class(err) != platforms.ClassTransient || b.secret == "" || len(b.posts()) > 0 {
		t.Fatalf("got %q, %v", id, err)
	}
	if strings.Contains(err.Error()+err.Err.Error(), "upload_token") {
		t.Errorf("the error contains the URL: %v, %v", err, err.Err)
	}
	first := b.checkpoint
	b.clock.Step(20 * time.Minute)
	held.allow(1 << 40)
	job = b.prepare(job)
	if job.Checkpoint != first || b.calls("create") != 1 {
		t.Errorf("the upload was started again, with %d calls", b.calls("create"))
	}
	if n := held.sent(); n != chunk {
		t.Errorf("%d bytes were sent, want one chunk of %d: two had arrived, and the last one waits", n, chunk)
	}
	held.allow(1 << 40)
	if got := b.tiktok.Publish(t.Context(), job); got.Outcome != platforms.Posted {
		t.Fatalf("got %+v", got)
	}
	if n := held.sent(); n != int(file.Size)-3*chunk {
		t.Errorf("the visible call sent %d bytes", n)
	}
	if got := b.posts(file); len(got) != 1 {
		t.Errorf("%d posts", len(got))
	}
}
