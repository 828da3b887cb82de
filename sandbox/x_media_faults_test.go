// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestXFaultsOnEveryStep loses each step's response and repeats the step.
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
	moving := b.xSent("image/gif", "tweet_gif", xPicture(t, "gif", 4, 4, 1))
	lost("status", func() reply { return b.xStatus(moving) })
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

// TestXUploadOverARestart kills the sandbox between two chunks, with and without a partially written second chunk.
func TestXUploadOverARestart(t *testing.T) {
	content := movie("isom", 640, 360, time.Second, 1000)
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
			if diff := cmp.Diff([]string{sumOf(content), sumOf(picture)}, got); diff != "" {
				t.Errorf("what was posted (-want +got):\n%s", diff)
			}
		})
	}
}

// TestXOneChunkManyTimes sends the same chunk concurrently from many clients. Its bytes may be stored only once.
func TestXOneChunkManyTimes(t *testing.T) {
	b := start(t, "")
	content := movie("isom", 640, 360, time.Second, 100_000)
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
