// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// TestForeignAddress gives Herald an upload URL that is not TikTok's, in TikTok's response and in the Secret that
// stores it. It must not be called.
func TestForeignAddress(t *testing.T) {
	var calls atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer inside.Close()
	for reason, address := range map[string]string{
		"a service inside": inside.URL + "/v1/agent/leave", "another site": "https://upload.evil.example/video",
		"TikTok without TLS":                 "http://open-upload.tiktokapis.com/video",
		"a host that only looks like TikTok": "https://open-upload.tiktokapis.com.evil.example/video", "nothing": "",
	} {
		t.Run(reason, func(t *testing.T) {
			p, _ := newTikTok(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/init/"):
					says(200, fmt.Sprintf(`{"data":{"publish_id":"v_pub_1","upload_url":%q},"error":{"code":"ok"}}`, address))(w, r)
				default:
					says(200, `{"data":{"status":"PROCESSING_UPLOAD","uploaded_bytes":0},"error":{"code":"ok"}}`)(w, r)
				}
			})
			job := platforms.Job{
				Account: platforms.Account{ID: "o", Token: platforms.Token{Access: "a"}},
				Content: platforms.Content{Category: v1alpha1.CategoryVideo, Media: []platforms.File{film(900)}, TikTok: v1alpha1.TikTokOptions{Draft: true}},
				StoreCheckpoint: func(context.Context, string, string) error {
					t.Error("a checkpoint was stored")
					return nil
				},
			}
			if id, err := p.Prepare(t.Context(), job); err == nil || !strings.Contains(err.Error(), "without returning its address") {
				t.Errorf("got %q, %v", id, err)
			}
			secret, err := json.Marshal(session{Address: address, Ends: p.Clock.Now().Add(time.Hour), Chunk: 900})
			if err != nil {
				t.Fatal(err)
			}
			job.Checkpoint, job.Secret = "v_pub_1", string(secret)
			if got := p.Publish(t.Context(), job); got.Outcome != platforms.NotSent || recorder.ClassOf(got.Err) != platforms.ClassTransient {
				t.Errorf("got %+v", got)
			}
		})
	}
	if calls.Load() != 0 {
		t.Errorf("the service inside was called %d times", calls.Load())
	}
}

// TestDocumentedAddresses tests the URLs in TikTok's documentation.
func TestDocumentedAddresses(t *testing.T) {
	p, _ := newTikTok(t, says(200, ""))
	for _, address := range []string{
		"https://open-upload.tiktokapis.com/video/?upload_id=67890&upload_token=Xza123",
		"https://open-upload-i18n.tiktokapis.com/video/?upload_id=67890&upload_token=Xza123",
		"https://upload.us.tiktokapis.com/video/?upload_id=67890&upload_token=chunkexample",
	} {
		if err := p.API.Addresses.Check(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestFailuresHaveTheSameMessage makes an upload URL respond with statuses that TikTok does not use, or that only mean
// that nothing exists at the URL.
func TestFailuresHaveTheSameMessage(t *testing.T) {
	words := map[string][]int{}
	for _, status := range []int{0, 204, 301, 401, 403, 404, 405, 416, 418, 500, 503} {
		p, _ := newTikTok(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method != http.MethodPut:
				says(200, `{"data":{"status":"PROCESSING_UPLOAD","uploaded_bytes":0},"error":{"code":"ok"}}`)(w, r)
			case status == 0:
				panic(http.ErrAbortHandler)
			default:
				says(status, "<html>inside</html>")(w, r)
			}
		})
		secret, err := json.Marshal(session{Address: p.API.BaseURL + "/video", Ends: p.Clock.Now().Add(time.Hour), Chunk: 900})
		if err != nil {
			t.Fatal(err)
		}
		job := platforms.Job{
			Account:    platforms.Account{ID: "o", Token: platforms.Token{Access: "a"}},
			Content:    platforms.Content{Category: v1alpha1.CategoryVideo, Media: []platforms.File{film(900)}, TikTok: v1alpha1.TikTokOptions{Draft: true}},
			Checkpoint: "v_pub_1", Secret: string(secret),
		}
		got := p.Publish(t.Context(), job)
		words[fmt.Sprint(got.Err)] = append(words[fmt.Sprint(got.Err)], status)
	}
	if len(words) != 1 {
		t.Errorf("all failures must have the same message: %v", words)
	}
}
