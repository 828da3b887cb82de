// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

const profile = "https://web.example/@acme"

// TestOutcomes publishes posts of every kind and checks the results.
func TestOutcomes(t *testing.T) {
	draft, owner := v1alpha1.TikTokOptions{Draft: true}, v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly}
	tests := map[string]struct {
		reason   string
		settings map[string]any
		options  v1alpha1.TikTokOptions
		// ticket reports whether the post's only id is its publish id.
		ticket bool
		// url is the expected address; "post" means the post's own address.
		url string
	}{
		"public":           {"a public post has its own address", nil, v1alpha1.TikTokOptions{}, false, "post"},
		"for the owner":    {"only the owner can see it", nil, owner, true, profile},
		"draft":            {"the draft is in the app", nil, draft, true, ""},
		"slow":             {"the lookup waits for the processing", map[string]any{"processing_ms": 4000}, v1alpha1.TikTokOptions{}, false, "post"},
		"moderated":        {"the public id is waited for", map[string]any{"listing_lag_ms": 1000}, v1alpha1.TikTokOptions{}, false, "post"},
		"moderated longer": {"for the usual time", map[string]any{"listing_lag_ms": 60000}, v1alpha1.TikTokOptions{}, false, "post"},
		"moderated slowly": {"the lookup does not wait for hours: the post is online", map[string]any{"listing_lag_ms": 3600000}, v1alpha1.TikTokOptions{}, true, profile},
	}
	kinds := map[string]func() platforms.File{
		"video": func() platforms.File { return film(900) }, "photo": func() platforms.File { return photoFile(t, 640, 640) },
	}
	for kind, file := range kinds {
		for name, tc := range tests {
			t.Run(kind+" "+name, func(t *testing.T) {
				b := newBox(t, tc.settings)
				job := b.job(file())
				job.Content.TikTok = tc.options
				job = b.prepare(job)
				got := b.publish(&job)
				posts := b.posts(job.Content.Media...)
				if got.Outcome != platforms.Posted || len(posts) != 1 {
					t.Fatalf("%s: got %+v and %d posts", tc.reason, got, len(posts))
				}
				url := tc.url
				if url == "post" {
					url = profile + "/" + kind + "/" + posts[0].ID
				}
				if got.ExternalURL != url || (got.ExternalID != posts[0].ID) != tc.ticket || tc.ticket && !strings.Contains(got.ExternalID, "~v2") {
					t.Errorf("%s: got %+v, want it at %q", tc.reason, got, url)
				}
				found, err := b.tiktok.Lookup(t.Context(), job)
				want := platforms.LookupResult{Matches: 1, ExternalID: got.ExternalID, ExternalURL: got.ExternalURL, Certain: true}
				if diff := cmp.Diff(want, found); diff != "" || err != nil {
					t.Errorf("lookup returned %v (-want +got):\n%s", err, diff)
				}
			})
		}
	}
}

// TestLongProcessing publishes posts whose processing takes longer than the call.
func TestLongProcessing(t *testing.T) {
	for kind, file := range map[string]platforms.File{"video": film(900), "photo": photoFile(t, 640, 640)} {
		t.Run(kind, func(t *testing.T) {
			b := newBox(t, map[string]any{"processing_ms": 300000})
			job := b.job(file)
			job = b.prepare(job)
			got := b.tiktok.Publish(t.Context(), job)
			if got.Outcome != platforms.Accepted || !validTicket(got.OperationID) || b.clock.Since(noon) > 15*time.Second {
				t.Fatalf("after %v: %+v", b.clock.Since(noon), got)
			}
			job.OperationID = got.OperationID
			if found, err := b.tiktok.Lookup(t.Context(), job); class(err) != platforms.ClassTransient || found != (platforms.LookupResult{}) {
				t.Errorf("processing is not proof: %+v, %v", found, err)
			}
			if kind == "video" {
				if _, err := b.tiktok.Prepare(t.Context(), job); class(err) != platforms.ClassDuplicate {
					t.Errorf("a processing upload must not be repeated: %v", err)
				}
			}
			b.step(5 * time.Minute)
			found, err := b.tiktok.Lookup(t.Context(), job)
			if posts := b.posts(file); err != nil || found.Matches != 1 || found.ExternalID != posts[0].ID {
				t.Errorf("the second lookup: %+v, %v", found, err)
			}
		})
	}
}

// TestModeration publishes posts that have no public id until moderation ends.
func TestModeration(t *testing.T) {
	const takes = 5 * time.Minute
	for kind, file := range map[string]platforms.File{"video": film(900), "photo": photoFile(t, 640, 640)} {
		t.Run(kind, func(t *testing.T) {
			b := newBox(t, map[string]any{"listing_lag_ms": takes.Milliseconds()})
			job := b.job(file)
			job = b.prepare(job)
			// Only Lookup receives SearchFrom.
			sent := job
			sent.SearchFrom = time.Time{}
			got := b.tiktok.Publish(t.Context(), sent)
			if got.Outcome != platforms.Accepted || !validTicket(got.OperationID) || got.ExternalID != "" || b.clock.Since(noon) > 15*time.Second {
				t.Fatalf("after %v: %+v, want a pending operation without a wait", b.clock.Since(noon), got)
			}
			job.OperationID = got.OperationID
			b.step(time.Second)
			asked, at := b.calls("status"), b.clock.Now()
			found, err := b.tiktok.Lookup(t.Context(), job)
			if class(err) != platforms.ClassTransient || found != (platforms.LookupResult{}) || !strings.Contains(err.Error(), "has not returned its id yet") {
				t.Errorf("while TikTok moderates it: %+v, %v", found, err)
			}
			if n := b.calls("status") - asked; n != 1 || !b.clock.Now().Equal(at) {
				t.Errorf("a lookup sent %d requests and waited for %v, want one without a wait", n, b.clock.Since(at))
			}
			if kind == "video" {
				if _, err := b.tiktok.Prepare(t.Context(), job); class(err) != platforms.ClassDuplicate {
					t.Errorf("a published post must not be uploaded again: %v", err)
				}
			}
			b.step(takes)
			found, err = b.tiktok.Lookup(t.Context(), job)
			if posts := b.posts(file); err != nil || !found.Certain || found.ExternalID != posts[0].ID || found.ExternalURL != profile+"/"+kind+"/"+posts[0].ID {
				t.Errorf("the second lookup: %+v, %v", found, err)
			}
		})
	}
}

// TestFailures makes TikTok accept posts and then give up.
func TestFailures(t *testing.T) {
	tests := map[string]struct {
		class platforms.Class
		// says must be part of the message.
		says string
	}{
		"file_format_check_failed":           {platforms.ClassPermanent, "format"},
		"duration_check_failed":              {platforms.ClassPermanent, "length"},
		"frame_rate_check_failed":            {platforms.ClassPermanent, "23 to 60"},
		"picture_size_check_failed":          {platforms.ClassPermanent, "width and height"},
		"video_pull_failed":                  {platforms.ClassTransient, "media store"},
		"photo_pull_failed":                  {platforms.ClassTransient, "media store"},
		"publish_cancelled":                  {platforms.ClassPermanent, "cancelled"},
		"internal":                           {platforms.ClassTransient, "internal error"},
		"auth_removed":                       {platforms.ClassReconnect, "connect the account again"},
		"spam_risk":                          {platforms.ClassPermanent, "spam"},
		"spam_risk_text":                     {platforms.ClassPermanent, "caption"},
		"spam_risk_too_many_posts":           {platforms.ClassQuota, "24-hour"},
		"spam_risk_user_banned_from_posting": {platforms.ClassRestricted, "banned"},
		"spam_risk_too_many_pending_share":   {platforms.ClassQuota, "finish or delete"},
		"something_new":                      {platforms.ClassPermanent, "something_new"},
		"<b>anything else</b>":               {platforms.ClassPermanent, "unspecified"},
	}
	for reason, tc := range tests {
		t.Run(reason, func(t *testing.T) {
			b := newBox(t, map[string]any{"processing_error": reason})
			job := b.prepare(b.job(film(900)))
			got := b.tiktok.Publish(t.Context(), job)
			if got.Outcome != platforms.Refused || got.Err.Class != tc.class || !strings.Contains(got.Err.Error(), tc.says) {
				t.Errorf("got %+v, want %s and %q", got, tc.class, tc.says)
			}
			found, err := b.tiktok.Lookup(t.Context(), job)
			if err != nil || found.Refused == nil || found.Refused.Class != tc.class || found.Matches != 0 {
				t.Errorf("the lookup returned %+v, %v", found, err)
			}
			b.set(map[string]any{"processing_error": ""})
			first := job.Checkpoint
			if job = b.prepare(job); job.Checkpoint == first {
				t.Error("a failed upload must be started again")
			}
			b.posted(job)
		})
	}
}

// TestPhotosRejectedAfterFetching makes TikTok reject photos after fetching them.
func TestPhotosRejectedAfterFetching(t *testing.T) {
	tests := map[string]struct {
		file  platforms.File
		class platforms.Class
	}{
		"too large": {photoFile(t, 2000, 2000), platforms.ClassPermanent},
		"away":      {platforms.File{Name: "away.jpg", MIMEType: v1alpha1.MimeJPEG, Bytes: &content{url: "http://127.0.0.1:1/away.jpg"}}, platforms.ClassTransient},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, nil)
			job := b.prepare(b.job(tc.file))
			if got := b.publish(&job); got.Outcome != platforms.Refused || got.Err.Class != tc.class || len(b.posts()) != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestLostPhotos loses the response to the call that posts photos. No other response contains their ticket.
func TestLostPhotos(t *testing.T) {
	tests := map[string]struct {
		reason, kind string
		options      v1alpha1.TikTokOptions
		want         int
	}{
		"posted":        {"everyone sees it in the list", "drop_after", v1alpha1.TikTokOptions{}, 1},
		"not posted":    {"its absence from the list is not proof", "drop_before", v1alpha1.TikTokOptions{}, 0},
		"for the owner": {"the list does not show it", "drop_after", v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly}, 0},
		"draft":         {"drafts are not listed", "drop_after", v1alpha1.TikTokOptions{Draft: true}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, nil)
			job := b.prepare(b.job(photoFile(t, 640, 640)))
			earlier := b.publish(&job)
			job.OperationID = ""
			job.Content.TikTok = tc.options
			b.step(time.Minute)
			job.SearchFrom = b.clock.Now()
			b.fault("publish", tc.kind, 0)
			if got := b.tiktok.Publish(t.Context(), job); got.Outcome != platforms.Unknown || got.OperationID != "" {
				t.Fatalf("got %+v", got)
			}
			b.step(time.Second)
			found, err := b.tiktok.Lookup(t.Context(), job)
			if err != nil || found.Matches != tc.want || found.Proof || found.ExternalID == earlier.ExternalID {
				t.Errorf("%s: found %+v, %v", tc.reason, found, err)
			}
			if tc.want > 0 && (found.ExternalURL != profile+"/photo/"+found.ExternalID || found.PostedAt.Before(job.SearchFrom.Truncate(time.Second))) {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// TestTruncatedCaptions looks up a post whose caption TikTok truncates to 150 characters.
func TestTruncatedCaptions(t *testing.T) {
	long := strings.Repeat("Ünïcode 🐟 words ", 20)
	first := func(n int) string { return string([]rune(long)[:n]) }
	tests := map[string]struct {
		reason, caption, listed string
		want                    int
	}{
		"whole":          {"a short caption is listed completely", "hello", "hello", 1},
		"cut":            {"a long text matches up to the cut", long, first(150), 1},
		"with ellipsis":  {"perhaps with a sign of that", long, first(147) + "...", 1},
		"cut in UTF-16":  {"the unit of the cut is undocumented", long, string(utf16.Decode(utf16.Encode([]rune(long))[:150])), 1},
		"half a letter":  {"the position of the cut is undocumented", long, first(149) + "\uFFFD", 1},
		"another, short": {"a short text differs, even if the caption starts with it", long, first(20), 0},
		"another, long":  {"a long text differs if its continuation differs", long, first(100) + strings.Repeat("x", 50), 0},
		"longer":         {"a longer caption with this beginning is another post", "hello", "hello " + long, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				listed, _ := json.Marshal(tc.listed)
				fmt.Fprintf(w, `{"data":{"videos":[{"id":"7","create_time":%d,"title":%s}],"has_more":false},"error":{"code":"ok"}}`, noon.Unix(), listed)
			}))
			defer server.Close()
			p := New(Config{APIURL: server.URL, Clock: clocktesting.NewFakeClock(noon)}, transport.New(transport.Options{}))
			job := platforms.Job{Content: platforms.Content{Category: v1alpha1.CategoryImage, Text: tc.caption}, SearchFrom: noon}
			if found, err := p.Lookup(t.Context(), job); err != nil || found.Matches != tc.want {
				t.Errorf("%s: found %+v, %v", tc.reason, found, err)
			}
		})
	}
}

// TestLongList looks up a post that is preceded by a page of newer posts.
func TestLongList(t *testing.T) {
	b := newBox(t, nil)
	job := b.prepare(b.job(photoFile(t, 64, 64)))
	want := b.publish(&job)
	job.OperationID = ""
	for range pageSize + 3 {
		other := job
		other.Content.Text = "another"
		b.step(time.Second)
		if got := b.publish(&other); got.Outcome != platforms.Posted {
			t.Fatalf("got %+v", got)
		}
	}
	found, err := b.tiktok.Lookup(t.Context(), job)
	if err != nil || found.Matches != 1 || found.ExternalID != want.ExternalID {
		t.Errorf("found %+v, %v, want %s", found, err, want.ExternalID)
	}
	job.Content.Text, job.SearchFrom = "another", noon
	if found, err = b.tiktok.Lookup(t.Context(), job); err != nil || found.Matches != pageSize+3 {
		t.Errorf("found %+v, %v; several posts match", found, err)
	}
}
