// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestXFaultsOnUpload(t *testing.T) {
	tests := []struct {
		name, reason, fault string
		wantStatus          int // 0: the connection is closed without an answer
		wantActed           bool
	}{
		{"status", "an outage before acting keeps nothing", `{"kind":"status","status":503}`, 503, false},
		{"drop before", "the connection ends and nothing was kept", `{"kind":"drop_before"}`, 0, false},
		{"drop after", "the chunk is there and nobody is told", `{"kind":"drop_after"}`, 0, true},
		{"error after", "a failure is answered though the chunk is there", `{"kind":"error_after","status":502}`, 502, true},
		{"rate limit", "nothing is kept", `{"kind":"rate_limit","retry_after_s":7}`, 429, false},
		{"token expired", "nothing is kept", `{"kind":"token_expired"}`, 401, false},
		{"token revoked", "nothing is kept", `{"kind":"token_revoked"}`, 401, false},
	}
	content := xFilm("isom", 640, 360, time.Second, 1000)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			id := b.xInitialize("video/mp4", "tweet_video", len(content)).text("data", "id")
			contentType, body := xForm("segment_index", "0", "media", string(content[:600]))
			b.fault(`{"platform":"x","operation":"upload","times":1,` + tt.fault[1:])
			r, err := b.try(http.MethodPost, xMedia+"/"+id+"/append", demoAccess, contentType, body)
			if (err != nil) != (tt.wantStatus == 0) || r.status != tt.wantStatus {
				t.Errorf("%s: status %d, error %v, want status %d", tt.reason, r.status, err, tt.wantStatus)
			}
			if limit := r.header.Get("X-Rate-Limit-Limit"); err == nil && limit != "1875" {
				t.Errorf("a rate of %q, want that of the endpoint", limit)
			}
			// The next segment follows only where the first one is there.
			if acted := b.xAppend(id, 1, content[600:]).status == http.StatusOK; acted != tt.wantActed {
				t.Errorf("%s: acted %v, want %v", tt.reason, acted, tt.wantActed)
			}
			for i, part := range [][]byte{content[:600], content[600:]} {
				if r := b.xAppend(id, i, part); r.status != http.StatusOK {
					t.Errorf("chunk %d may come again: %d %s", i, r.status, r.body)
				}
			}
			if r := b.xFinalize(id); r.at("data", "size") != 1000.0 {
				t.Errorf("in the end: %d %s", r.status, r.body)
			}
			if got := b.calls("upload"); got != 6 {
				t.Errorf("%d uploads counted, want each of the 6 requests", got)
			}
		})
	}
}

// TestXFaultsOnEveryStep loses the answer of each step and takes it once more.
func TestXFaultsOnEveryStep(t *testing.T) {
	b := start(t, "")
	content := xPicture(t, "png", 4, 4, 1)
	lost := func(operation string, again func() reply) reply {
		t.Helper()
		b.fault(`{"platform":"x","operation":"` + operation + `","kind":"error_after","status":500}`)
		if r := again(); r.status != http.StatusInternalServerError {
			t.Fatalf("%s: %d %s", operation, r.status, r.body)
		}
		r := again()
		if r.status != http.StatusOK {
			t.Errorf("%s again: %d %s", operation, r.status, r.body)
		}
		return r
	}
	id := lost("upload", func() reply { return b.xInitialize("image/png", "tweet_image", len(content)) }).text("data", "id")
	lost("upload", func() reply { return b.xAppend(id, 0, content) })
	lost("upload", func() reply { return b.xFinalize(id) })
	lost("status", func() reply { return b.xStatus(id) })
	lost("upload", func() reply { return b.xForm(xMedia, "media", string(content), "media_category", "tweet_image") })
	if got := b.calls("status"); got != 2 {
		t.Errorf("%d requests for a status, want 2", got)
	}
	b.fault(`{"platform":"x","operation":"publish","kind":"drop_after"}`)
	if _, err := b.try(http.MethodPost, "/x/2/tweets", demoAccess, jsonType, xBody("once", "", id)); err == nil {
		t.Error("the connection should have been closed")
	}
	r := b.get("/x/2/users/" + demoID + "/tweets?tweet.fields=attachments")
	if diff := cmp.Diff([]any{"3_" + id}, r.list("data", "0", "attachments", "media_keys")); diff != "" || len(r.list("data")) != 1 {
		t.Errorf("who looks finds the post by its media (-want +got):\n%s", diff)
	}
}

func TestXDelayedChunkArrivesThoughTheClientHasGone(t *testing.T) {
	b := start(t, "")
	content := xPicture(t, "png", 4, 4, 1)
	id := b.xInitialize("image/png", "tweet_image", len(content)).text("data", "id")
	b.fault(`{"platform":"x","operation":"upload","kind":"delay","delay_ms":5000}`)
	contentType, body := xForm("segment_index", "0", "media", string(content))
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.http.URL+xMedia+"/"+id+"/append", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+demoAccess)
	req.Header.Set("Content-Type", contentType)
	gone := make(chan error, 1)
	go func() {
		resp, err := b.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		gone <- err
	}()
	<-b.clock.timers
	leave()
	if err := <-gone; err == nil {
		t.Fatal("the client got an answer before the delay was over")
	}
	b.clock.Step(5 * time.Second)
	b.http.Close() // waits for the handler
	b.listenAgain()
	if r := b.xFinalize(id); r.status != http.StatusOK {
		t.Errorf("the chunk must be kept although nobody waits for it: %d %s", r.status, r.body)
	}
}

// TestXUploadOverARestart kills the sandbox between two chunks, with and without a piece of the second one written.
func TestXUploadOverARestart(t *testing.T) {
	content := xFilm("isom", 640, 360, time.Second, 1000)
	for name, torn := range map[string]string{"between chunks": "", "within a chunk": "torn"} {
		t.Run(name, func(t *testing.T) {
			b := start(t, t.TempDir())
			picture := xPicture(t, "png", 4, 4, 1)
			ready := b.xImage(picture)
			id := b.xInitialize("video/mp4", "tweet_video", len(content)).text("data", "id")
			b.xAppend(id, 0, content[:600])
			if err := b.server.Close(); err != nil {
				t.Fatal(err)
			}
			partial, err := filepath.Glob(filepath.Join(b.dir, "media", "partial", "*"))
			if err != nil || len(partial) != 1 {
				t.Fatalf("uploads %v, error %v, want one", partial, err)
			}
			file, err := os.OpenFile(partial[0], os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = file.WriteString(torn)
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Fatal(err)
			}

			c := &box{t: t, clock: b.clock}
			c.open(b.dir)
			if r := c.xAppend(id, 0, content[:600]); r.status != http.StatusOK {
				t.Errorf("a chunk from before: %d %s", r.status, r.body)
			}
			c.xAppend(id, 1, content[600:])
			c.xFinalize(id)
			c.clock.Step(2 * time.Second)
			c.tweet(xBody("film", "", id))
			c.tweet(xBody("picture", "", ready))
			posts := c.control(http.MethodGet, "/posts", "", http.StatusOK)
			got := []string{posts.text("data", "0", "media", "0", "sha256"), posts.text("data", "1", "media", "0", "sha256")}
			if diff := cmp.Diff([]string{xSum(content), xSum(picture)}, got); diff != "" {
				t.Errorf("what was posted (-want +got):\n%s", diff)
			}
		})
	}
}

// TestXOneChunkManyTimes sends the same chunk from many clients at once: its bytes may be there only once.
func TestXOneChunkManyTimes(t *testing.T) {
	b := start(t, "")
	content := xFilm("isom", 640, 360, time.Second, 100_000)
	id := b.xInitialize("video/mp4", "tweet_video", len(content)).text("data", "id")
	contentType, body := xForm("segment_index", "0", "media", string(content))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if r, err := b.try(http.MethodPost, xMedia+"/"+id+"/append", demoAccess, contentType, body); err != nil || r.status != http.StatusOK {
				t.Errorf("%v %d %s", err, r.status, r.body)
			}
		})
	}
	wg.Wait()
	if r := b.xFinalize(id); r.at("data", "size") != 100_000.0 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestXQuotaWithMedia(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"quota":1}`, http.StatusOK)
	id := b.xImage(xPicture(t, "png", 4, 4, 1))
	if r := b.tweet(xBody("one", "", id)); r.status != http.StatusCreated {
		t.Fatalf("%d %s", r.status, r.body)
	}
	b.xImage(xPicture(t, "png", 4, 4, 2)) // uploads are no posts
	if r := b.tweet(xBody("two", "", id)); r.status != http.StatusTooManyRequests || r.header.Get("X-User-Limit-24hour-Remaining") != "0" {
		t.Errorf("%d %v", r.status, r.header)
	}
}
