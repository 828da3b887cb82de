// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFaultOnInstagramPublish lets the publication go wrong in every way, and then finds out as a publisher would.
func TestFaultOnInstagramPublish(t *testing.T) {
	tests := []struct {
		name, reason, fault string
		wantStatus          int // 0: the connection is closed without an answer
		want                map[string]any
		wantActed           bool
	}{
		{"status", "an outage before acting publishes nothing", `"kind":"status","status":503`, 503, map[string]any{"code": 2.0, "is_transient": true}, false},
		{"drop before", "the connection ends and nothing was done", `"kind":"drop_before"`, 0, nil, false},
		{"drop after", "the connection ends though the post is out", `"kind":"drop_after"`, 0, nil, true},
		{"error after", "a failure is answered though the post is out", `"kind":"error_after","status":500`, 500, map[string]any{"code": 1.0}, true},
		{"rate limit", "nothing was done", `"kind":"rate_limit"`, 400, map[string]any{"code": 17.0}, false},
		{"token expired", "nothing was done", `"kind":"token_expired"`, 400, map[string]any{"code": 190.0, "error_subcode": 463.0}, false},
		{"token revoked", "nothing was done", `"kind":"token_revoked"`, 400, map[string]any{"code": 190.0, "error_subcode": 460.0}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40)})
			id := b.igReady(query("caption=hello&image_url=" + s.url + "/a.jpg"))
			b.fault(`{"platform":"instagram","operation":"publish",` + tt.fault + `}`)
			r, err := b.try(http.MethodPost, instagramPath+"/media_publish", "instagram-access-demo", formType, "creation_id="+id)
			if (err != nil) != (tt.wantStatus == 0) || r.status != tt.wantStatus {
				t.Errorf("%s: status %d, error %v, want status %d", tt.reason, r.status, err, tt.wantStatus)
			}
			for name, want := range tt.want {
				if got := r.at("error", name); got != want {
					t.Errorf("%s: %s is %v, want %v in %s", tt.reason, name, got, want, r.body)
				}
			}
			want := map[bool]string{true: "PUBLISHED", false: "FINISHED"}[tt.wantActed]
			if got := b.igStatus(id); got != want {
				t.Errorf("%s: the container is %s, want %s", tt.reason, got, want)
			}
			again := b.igPublish(id)
			if (again.at("error", "code") == 24.0) != tt.wantActed {
				t.Errorf("%s: publishing again: %d %s", tt.reason, again.status, again.body)
			}
			if diff := cmp.Diff([]string{"hello"}, b.texts()); diff != "" {
				t.Errorf("%s: there is one post in the end (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestInstagramOperations(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40)})
	id := b.igContainer(query("image_url=" + s.url + "/a.jpg"))
	b.igStatus(id)
	b.read("instagram", "/instagram/v25.0/"+b.igPublish(id).text("id"))
	b.read("instagram", instagramPath+"/media")
	b.read("instagram", instagramPath+"/content_publishing_limit")
	b.read("instagram", "/instagram/v25.0/me")
	b.read("instagram", instagramPath)
	for operation, want := range map[string]int{
		"create": 1, "status": 1, "publish": 1, "read": 1, "list": 1, "publishing_limit": 1, "identity": 2, "upload": 0, "refresh_token": 0,
	} {
		if got := b.callsOn("instagram", operation); got != want {
			t.Errorf("%s counted %d times, want %d", operation, got, want)
		}
	}
}

// TestOnePublicationOnInstagram publishes the same container many times at once: exactly one post may come of it.
func TestOnePublicationOnInstagram(t *testing.T) {
	b := start(t, t.TempDir())
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40)})
	id := b.igReady(query("caption=once&image_url=" + s.url + "/a.jpg"))
	var (
		mu   sync.Mutex
		wins int
		wg   sync.WaitGroup
	)
	for range 16 {
		wg.Go(func() {
			r, err := b.try(http.MethodPost, instagramPath+"/media_publish", "instagram-access-demo", formType, "creation_id="+id)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && r.status == http.StatusOK:
				wins++
			case err != nil || r.at("error", "error_subcode") != 2207008.0:
				t.Errorf("%v %d %s", err, r.status, r.body)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff([]string{"once"}, b.texts()); wins != 1 || diff != "" {
		t.Errorf("%d of 16 published (-want +got):\n%s", wins, diff)
	}
}
