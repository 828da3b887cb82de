// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"image"
	"image/jpeg"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/sandboxtest"
)

// content is a file in memory.
type content struct {
	data []byte
	url  string

	mu sync.Mutex
	// read is the number of bytes read, and left is the number that can still be read.
	read, left int
}

var errAway = errors.New("the store is unavailable")

func (c *content) Open(_ context.Context, offset, length int64) (io.ReadCloser, error) {
	return io.NopCloser(io.LimitReader(&reader{c, int(offset)}, length)), nil
}

func (c *content) Address(context.Context, time.Duration) (string, error) { return c.url, nil }

// allow makes n more bytes readable, and resets the count.
func (c *content) allow(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.left = 0, n
}

func (c *content) sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

type reader struct {
	*content
	at int
}

func (r *reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left <= 0 {
		return 0, errAway
	}
	n := copy(p[:min(len(p), r.left)], r.data[r.at:])
	r.at, r.read, r.left = r.at+n, r.read+n, r.left-n
	return n, nil
}

// film returns a video of the given size in bytes.
func film(size int) platforms.File {
	data := make([]byte, size)
	copy(data, "\x00\x00\x00\x18ftypisom\x00\x00\x00\x00isomiso2")
	for i := 24; i < size; i++ {
		data[i] = byte(i >> 12)
	}
	return platforms.File{
		Name: "launch.mp4", MIMEType: v1alpha1.MimeMP4, Size: int64(size), Width: 720, Height: 1280, Duration: 30 * time.Second,
		Bytes: &content{data: data, left: 1 << 40},
	}
}

// photoFile returns a JPEG that a test server serves by URL.
func photoFile(t *testing.T, width, height int) platforms.File {
	t.Helper()
	var data bytes.Buffer
	if err := jpeg.Encode(&data, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(data.Bytes()) // the platform may have closed the connection
	}))
	t.Cleanup(site.Close)
	return platforms.File{
		Name: "photo.jpg", MIMEType: v1alpha1.MimeJPEG, Size: int64(data.Len()), Width: width, Height: height,
		Bytes: &content{data: data.Bytes(), url: site.URL, left: 1 << 40},
	}
}

func sum(file *platforms.File) string {
	held, _ := file.Bytes.(*content)
	digest := sha256.Sum256(held.data)
	return hex.EncodeToString(digest[:])
}

// box is a sandbox with one account and a TikTok platform that publishes to it.
type box struct {
	t       *testing.T
	clock   recorder.Clock
	server  *sandbox.Server
	tiktok  *Platform
	control sandboxtest.Client
	account sandboxtest.Account
	// checkpoint and secret are the last ones stored.
	checkpoint, secret string
}

func newBox(t *testing.T, settings map[string]any) *box {
	t.Helper()
	b := &box{t: t, clock: recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)}}
	server, err := sandbox.New(sandbox.Options{Clock: b.clock.FakeClock})
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(server)
	t.Cleanup(func() {
		site.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	b.server, b.control = server, sandboxtest.Client{URL: site.URL}
	b.tiktok = New(Config{APIURL: site.URL + "/tiktok", WebURL: "https://web.example", Clock: b.clock}, transport.New(transport.Options{}))
	// A published post has its public id immediately, unless a test overrides this.
	all := map[string]any{"listing_lag_ms": 0}
	maps.Copy(all, settings)
	if b.account, err = b.control.Account(t.Context(), "tiktok", "o-1", all); err != nil {
		t.Fatal(err)
	}
	return b
}

// set changes the account's settings.
func (b *box) set(settings map[string]any) {
	b.t.Helper()
	if _, err := b.control.Account(b.t.Context(), "tiktok", "o-1", settings); err != nil {
		b.t.Fatal(err)
	}
}

// job returns a job whose checkpoints are stored in the box.
func (b *box) job(files ...platforms.File) platforms.Job {
	out := platforms.Job{
		Account: platforms.Account{ID: b.account.ID, Username: "acme", Token: platforms.Token{Access: b.account.AccessToken}},
		Content: platforms.Content{Category: v1alpha1.CategoryImage, Text: "Hello #demo", Media: files}, SearchFrom: b.clock.Now(),
		StoreCheckpoint: func(_ context.Context, checkpoint, secret string) error {
			b.checkpoint, b.secret = checkpoint, secret
			return nil
		},
	}
	if files[0].IsVideo() {
		out.Content.Category = v1alpha1.CategoryVideo
	}
	return out
}

// prepare prepares a post. For a video, it continues from the stored checkpoint, as another process would.
func (b *box) prepare(job platforms.Job) platforms.Job {
	b.t.Helper()
	if !b.tiktok.Prepares(job.Content) {
		return job
	}
	job.Checkpoint, job.Secret = b.checkpoint, b.secret
	id, err := b.tiktok.Prepare(b.t.Context(), job)
	if err != nil {
		b.t.Fatalf("cannot prepare: %v (%v)", err, err.Err)
	}
	if job.Checkpoint = id; job.Content.Category != v1alpha1.CategoryVideo {
		return job
	}
	if id != b.checkpoint || b.secret == "" || strings.Contains(id, "upload") {
		b.t.Fatalf("prepared %q, noted %q and %q", id, b.checkpoint, b.secret)
	}
	job.Checkpoint, job.Secret = b.checkpoint, b.secret
	return job
}

// publish publishes a job, advancing the clock by a few seconds before each status call. It stores the ticket in the
// job.
func (b *box) publish(job *platforms.Job) platforms.Result {
	b.t.Helper()
	return platformtest.Publish(b.t, b.tiktok, job, func() { b.step(2 * time.Second) })
}

// step lets TikTok fetch the declared files and then advances the clock.
func (b *box) step(d time.Duration) {
	b.t.Helper()
	b.server.AwaitFetched()
	b.clock.Step(d)
}

func (b *box) fault(operation, kind string, status int) {
	b.t.Helper()
	fault := sandboxtest.Fault{Platform: "tiktok", Operation: operation, Kind: kind, Status: status, Times: 1}
	if err := b.control.Fault(b.t.Context(), fault); err != nil {
		b.t.Fatal(err)
	}
}

// posts returns the published posts, and checks that they contain the files' bytes.
func (b *box) posts(files ...platforms.File) []sandboxtest.Post {
	b.t.Helper()
	posts, err := b.control.Posts(b.t.Context(), "tiktok", b.account.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, post := range posts {
		if len(post.Media) != len(files) {
			b.t.Errorf("%d files arrived, want %d", len(post.Media), len(files))
			continue
		}
		for i := range files {
			if post.Media[i].SHA256 != sum(&files[i]) {
				b.t.Errorf("file %d arrived with other bytes", i)
			}
		}
	}
	return posts
}

// calls counts the calls of an operation.
func (b *box) calls(operation string) int {
	b.t.Helper()
	counts, err := b.control.Calls(b.t.Context(), "tiktok")
	if err != nil {
		b.t.Fatal(err)
	}
	return counts[operation]
}

// posted publishes a job and checks that its post then exists exactly once.
func (b *box) posted(job platforms.Job) {
	b.t.Helper()
	if got := b.tiktok.Publish(b.t.Context(), job); got.Outcome != platforms.Posted || len(b.posts(job.Content.Media...)) != 1 {
		b.t.Errorf("got %+v", got)
	}
}
