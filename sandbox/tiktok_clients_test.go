// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"testing"
)

// TestTikTokOverlooksWhatItDoesNotKnow has requests that TikTok answers, and that a strict sandbox refuses.
func TestTikTokOverlooksWhatItDoesNotKnow(t *testing.T) {
	init := func(more string) string { return "{" + directPost + "," + fromFile(100, 100, 1) + more + "}" }
	tests := []struct{ name, reason, method, path, body string }{
		{"post_mode", "OpenPost sends it with videos as well", "POST", tiktokPublish + "video/init/", init(`,"post_mode":"DIRECT_POST"`)},
		{"inbox", "as with drafts", "POST", tiktokPublish + "inbox/video/init/", "{" + fromFile(100, 100, 1) + `,"post_info":{"title":"a"}}`},
		{"creator info", "an empty body may have fields", "POST", tiktokPublish + "creator_info/query/", `{"a":1}`},
		{"user info", "so may the address have parameters", "GET", "/tiktok/v2/user/info/?fields=open_id&lang=en", ""},
	}
	lenient, strict := startLenient(t), start(t, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := lenient.as("tiktok", tt.method, tt.path, jsonUTF8, tt.body); r.status != http.StatusOK || r.text("error", "code") != "ok" {
				t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
			}
			if r := strict.as("tiktok", tt.method, tt.path, jsonUTF8, tt.body); !tiktokError(r, http.StatusBadRequest, "invalid_params") {
				t.Errorf("a test would not see a misspelt name: %d %s", r.status, r.body)
			}
		})
	}
}
