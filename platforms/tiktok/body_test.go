// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"encoding/json"
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

// desk is a server that responds to API calls and records their bodies by path.
type desk struct {
	mu   sync.Mutex
	seen map[string]map[string]any
	// says and code are the bodies and statuses of the responses, by path.
	says map[string]string
	code map[string]int
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	content, _ := io.ReadAll(r.Body) // a missing part shows in the comparison
	var body map[string]any
	_ = json.Unmarshal(content, &body)
	if r.Header.Get("Authorization") == "Bearer access" && r.Header.Get("Content-Type") == "application/json; charset=UTF-8" {
		d.seen[r.URL.Path] = body
	}
	if status := d.code[r.URL.Path]; status != 0 {
		w.WriteHeader(status)
	}
	_, _ = io.WriteString(w, d.says[r.URL.Path]) // the client may have closed the connection
}

const (
	pathCreator = "/v2/post/publish/creator_info/query/"
	pathVideo   = "/v2/post/publish/video/init/"
	pathInbox   = "/v2/post/publish/inbox/video/init/"
	pathPhotos  = "/v2/post/publish/content/init/"
	pathStatus  = "/v2/post/publish/status/fetch/"

	// ticket is the photos' publish id.
	ticket = "p_pub_url~v2-1.1"
)

func saying(data string) string {
	return `{"data":` + data + `,"error":{"code":"ok","message":"","log_id":"1"}}`
}

func newDesk(t *testing.T) (*desk, *Platform) {
	t.Helper()
	d := &desk{seen: map[string]map[string]any{}, code: map[string]int{}}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	d.says = map[string]string{
		pathCreator: saying(`{"privacy_level_options":["PUBLIC_TO_EVERYONE","SELF_ONLY"],"max_video_post_duration_sec":600}`),
		pathVideo:   saying(`{"publish_id":"v_pub_file~v2-1.1","upload_url":"` + server.URL + `/upload?id=1"}`),
		pathInbox:   saying(`{"publish_id":"v_inbox_file~v2-1.1","upload_url":"` + server.URL + `/upload?id=1"}`),
		pathPhotos:  saying(`{"publish_id":"` + ticket + `"}`),
		pathStatus:  saying(`{"status":"PUBLISH_COMPLETE","publicaly_available_post_id":[7714257762351316993]}`),
	}
	clk := recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)}
	return d, New(Config{APIURL: server.URL, WebURL: "https://web.example", Clock: clk}, transport.New(transport.Options{}))
}

func deskJob(options v1alpha1.TikTokOptions, files ...platforms.File) platforms.Job {
	job := platforms.Job{
		Account: platforms.Account{ID: "o-1", Username: "acme", Token: platforms.Token{Access: "access"}},
		Content: platforms.Content{Category: v1alpha1.CategoryImage, Text: `Fish & <chips> "now"`, Media: files, TikTok: options},
	}
	if files[0].IsVideo() {
		job.Content.Category = v1alpha1.CategoryVideo
	}
	return job
}

// prepareAndPublish publishes a job, preparing it first if necessary. The checkpoint of photos is not a ticket for
// status calls.
func prepareAndPublish(t *testing.T, p *Platform, job platforms.Job) platforms.Result {
	t.Helper()
	if p.Prepares(job.Content) {
		var err *platforms.Error
		if job.Checkpoint, err = p.Prepare(t.Context(), job); err != nil || job.Checkpoint == "" || validTicket(job.Checkpoint) {
			t.Fatalf("prepared %q, %v", job.Checkpoint, err)
		}
	}
	return p.Publish(t.Context(), job)
}

// TestBodies compares complete request bodies.
func TestBodies(t *testing.T) {
	no, yes := new(false), new(true)
	disabled := saying(`{"privacy_level_options":["SELF_ONLY"],"comment_disabled":true,"duet_disabled":true,"stitch_disabled":true}`)
	at := 1500 * time.Millisecond
	source := `"source_info":{"source":"FILE_UPLOAD","video_size":900,"chunk_size":900,"total_chunk_count":1}`
	video := func(rest string) string {
		return `{"post_info":{"title":"Fish & <chips> \"now\"","brand_content_toggle":false,"brand_organic_toggle":false,` + rest + `},` + source + `}`
	}
	photos := func(mode, rest, more string) string {
		return `{"media_type":"PHOTO","post_mode":"` + mode + `","post_info":{"description":"Fish & <chips> \"now\""` + rest + `}` + more +
			`,"source_info":{"source":"PULL_FROM_URL","photo_cover_index":0,"photo_images":["https://store.example/1","https://store.example/2"]}}`
	}
	tests := map[string]struct {
		reason, path  string
		video         bool
		options       v1alpha1.TikTokOptions
		thumbnail     *time.Duration
		creator, want string
	}{
		"video": {
			"omitted options are allowed, for everyone", pathVideo, true,
			v1alpha1.TikTokOptions{},
			nil, "",
			video(`"privacy_level":"PUBLIC_TO_EVERYONE","disable_comment":false,"disable_duet":false,"disable_stitch":false`),
		},
		"video, everything": {
			"every option arrives", pathVideo, true,
			v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly, AllowComment: no, AllowDuet: yes, AllowStitch: no, IsAIGenerated: true},
			&at, "",
			video(`"privacy_level":"SELF_ONLY","disable_comment":true,"disable_duet":false,"disable_stitch":true,"video_cover_timestamp_ms":1500,"is_aigc":true`),
		},
		"video, disabled by its owner": {
			"options that the account disabled stay disabled", pathVideo, true,
			v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly, AllowComment: yes, AllowDuet: yes},
			nil, disabled,
			video(`"privacy_level":"SELF_ONLY","disable_comment":true,"disable_duet":true,"disable_stitch":true`),
		},
		"video draft": {"its owner writes it in the app", pathInbox, true, v1alpha1.TikTokOptions{Draft: true}, &at, "", `{` + source + `}`},
		"photos": {
			"omitted options are allowed, except music", pathPhotos, false,
			v1alpha1.TikTokOptions{},
			nil, "",
			photos("DIRECT_POST", `,"privacy_level":"PUBLIC_TO_EVERYONE","disable_comment":false,"auto_add_music":false,"brand_content_toggle":false,"brand_organic_toggle":false`, ""),
		},
		"photos, everything": {
			"every option arrives, the label outside", pathPhotos, false,
			v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly, AllowComment: no, AutoAddMusic: true, IsAIGenerated: true},
			nil, "",
			photos("DIRECT_POST", `,"privacy_level":"SELF_ONLY","disable_comment":true,"auto_add_music":true,"brand_content_toggle":false,"brand_organic_toggle":false`, `,"is_aigc":true`),
		},
		"photos, comments disabled by the owner": {
			"options that the account disabled stay disabled", pathPhotos, false,
			v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly, AllowComment: yes},
			nil, disabled,
			photos("DIRECT_POST", `,"privacy_level":"SELF_ONLY","disable_comment":true,"auto_add_music":false,"brand_content_toggle":false,"brand_organic_toggle":false`, ""),
		},
		"photo draft": {"the text is included", pathPhotos, false, v1alpha1.TikTokOptions{Draft: true}, nil, "", photos("MEDIA_UPLOAD", "", "")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d, p := newDesk(t)
			if tc.creator != "" {
				d.says[pathCreator] = tc.creator
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if tc.video {
				job := deskJob(tc.options, film(900))
				job.Content.ThumbnailAt = tc.thumbnail
				if id, err := p.Prepare(t.Context(), job); err != nil || !validTicket(id) {
					t.Fatalf("got %q, %v", id, err)
				}
			} else {
				job := deskJob(tc.options, film(1), film(1))
				for i := range job.Content.Media {
					job.Content.Media[i].Bytes = &content{url: "https://store.example/" + string(rune('1'+i))}
				}
				job.Content.Category = v1alpha1.CategoryImage
				if got := prepareAndPublish(t, p, job); got.Outcome != platforms.Accepted {
					t.Fatalf("got %+v", got)
				}
			}
			if _, asked := d.seen[pathCreator]; asked == tc.options.Draft {
				t.Errorf("the account's settings were requested: %t", asked)
			}
			if diff := cmp.Diff(want, d.seen[tc.path]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCreator prepares videos and photos that their account is not allowed to post.
func TestCreator(t *testing.T) {
	tests := map[string]struct {
		reason, says string
		length       time.Duration
		class        platforms.Class
		want         string
	}{
		"another level":  {"the levels that can be chosen are named", saying(`{"privacy_level_options":["FOLLOWER_OF_CREATOR","SELF_ONLY"]}`), time.Second, platforms.ClassPermanent, "tiktok.privacyLevel SELF_ONLY"},
		"no level":       {"no level can be requested", saying(`{"privacy_level_options":["FOLLOWER_OF_CREATOR"]}`), time.Second, platforms.ClassPermanent, "nor any other"},
		"no limit":       {"TikTok decides", saying(`{}`), time.Hour, "", ""},
		"exact limit":    {"the limit is inclusive", saying(`{"max_video_post_duration_sec":180}`), 3*time.Minute + 40*time.Millisecond, "", ""},
		"too long":       {"the bound is named", saying(`{"max_video_post_duration_sec":180}`), 3*time.Minute + time.Second, platforms.ClassPermanent, "at most 3m0s"},
		"cap within 200": {"a success status may contain an error", `{"data":{},"error":{"code":"spam_risk_too_many_posts"}}`, time.Second, platforms.ClassQuota, "24-hour"},
		"ban within 200": {"a success status may contain an error", `{"data":{},"error":{"code":"spam_risk_user_banned_from_posting"}}`, time.Second, platforms.ClassRestricted, "banned"},
		"app within 200": {"a success status may contain an error", `{"data":{},"error":{"code":"reached_active_user_cap"}}`, time.Second, platforms.ClassQuota, "audit the app"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]platforms.File{"video": film(900), "photo": photoFile(t, 64, 64)}
			for kind, file := range files {
				expected, want := tc.class, tc.want
				if kind == "video" {
					file.Duration = tc.length
				} else if tc.length > time.Minute {
					expected = "" // a photo has no duration
				}
				d, p := newDesk(t)
				d.says[pathCreator] = tc.says
				_, err := p.Prepare(t.Context(), deskJob(v1alpha1.TikTokOptions{}, file))
				if class(err) != expected || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: a %s got %v, want %s and %q", tc.reason, kind, err, expected, want)
				}
				if _, started := d.seen[pathVideo]; started && expected != "" || d.seen[pathPhotos] != nil {
					t.Errorf("the upload of a %s was started nevertheless", kind)
				}
			}
		})
	}
}

// TestErrors tests TikTok's error table, for the calls that start an upload and the call that posts photos.
func TestErrors(t *testing.T) {
	tests := []struct {
		status  int
		code    string
		class   platforms.Class
		says    string
		outcome platforms.Outcome
	}{
		{400, "invalid_param", platforms.ClassPermanent, "does not identify a part", platforms.Refused},
		{400, "invalid_params", platforms.ClassPermanent, "does not identify a part", platforms.Refused},
		{400, "app_version_check_failed", platforms.ClassPermanent, "update TikTok's app", platforms.Refused},
		{400, "invalid_publish_id", platforms.ClassPermanent, "no longer has", platforms.Refused},
		{400, "token_not_authorized_for_specified_publish_id", platforms.ClassPermanent, "not for this account", platforms.Refused},
		{400, "scope_permission_missed", platforms.ClassReconnect, "grant", platforms.Refused},
		{401, "scope_not_authorized", platforms.ClassReconnect, "grant", platforms.Refused},
		{401, "access_token_invalid", platforms.ClassRefresh, "expired", platforms.Refused},
		{403, "spam_risk_too_many_posts", platforms.ClassQuota, "24-hour", platforms.Refused},
		{200, "spam_risk_too_many_posts", platforms.ClassQuota, "24-hour", platforms.Refused},
		{403, "spam_risk_too_many_pending_share", platforms.ClassQuota, "five unfinished drafts", platforms.Refused},
		{403, "spam_risk_user_banned_from_posting", platforms.ClassRestricted, "banned", platforms.Refused},
		{403, "reached_active_user_cap", platforms.ClassQuota, "24-hour", platforms.Refused},
		{403, "unaudited_client_can_only_post_to_private_accounts", platforms.ClassPermanent, "audit", platforms.Refused},
		{403, "url_ownership_unverified", platforms.ClassPermanent, "developer portal", platforms.Refused},
		{403, "privacy_level_option_mismatch", platforms.ClassPermanent, "tiktok.privacyLevel", platforms.Refused},
		{429, "rate_limit_exceeded", platforms.ClassRateLimited, "per-minute", platforms.Refused},
		{429, "", platforms.ClassRateLimited, "per-minute", platforms.Refused},
		{500, "internal_error", platforms.ClassTransient, "is having problems", platforms.Unknown},
		{200, "internal_error", platforms.ClassTransient, "is having problems", platforms.Unknown},
		{502, "", platforms.ClassTransient, "is having problems", platforms.Unknown},
		{504, "invalid_params", platforms.ClassTransient, "is having problems", platforms.Unknown},
		{307, "invalid_params", platforms.ClassUnknown, "307", platforms.Unknown},
		{200, "", platforms.ClassUnknown, "200", platforms.Unknown},
		{400, "", platforms.ClassUnknown, "400", platforms.Unknown},
		{400, "invalid_file_upload", platforms.ClassPermanent, "change the file", platforms.Refused},
		{403, "something_new", platforms.ClassPermanent, "something_new", platforms.Refused},
		{409, "something_new", platforms.ClassPermanent, "something_new", platforms.Refused},
		{200, "something_new", platforms.ClassPermanent, "something_new", platforms.Refused},
		{500, "something_new", platforms.ClassTransient, "is having problems", platforms.Unknown},
		{408, "invalid_params", platforms.ClassUnknown, "408", platforms.Unknown},
		{404, "unsigned", platforms.ClassUnknown, "404", platforms.Unknown},
		{403, "unsigned", platforms.ClassUnknown, "403", platforms.Unknown},
	}
	for _, tc := range tests {
		t.Run(tc.code, func(t *testing.T) {
			d, p := newDesk(t)
			for _, path := range []string{pathVideo, pathPhotos} {
				logID := "2026112012000001"
				if tc.code == "unsigned" {
					logID = "" // TikTok's own responses have one
				}
				d.code[path], d.says[path] = tc.status, `{"data":{},"error":{"code":"`+tc.code+`","message":"…","log_id":"`+logID+`"}}`
			}
			_, err := p.Prepare(t.Context(), deskJob(v1alpha1.TikTokOptions{}, film(900)))
			if class(err) != tc.class || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%d %s: got class %s, %v; want %s and %q", tc.status, tc.code, class(err), err, tc.class, tc.says)
			}
			if limited := tc.class == platforms.ClassRateLimited; limited != err.RetryAt.Equal(noon.Add(time.Minute)) {
				t.Errorf("%d %s: the retry is at %v, want a minute later", tc.status, tc.code, err.RetryAt)
			}
			got := prepareAndPublish(t, p, deskJob(v1alpha1.TikTokOptions{}, photoFile(t, 64, 64)))
			if got.Outcome != tc.outcome || tc.outcome == platforms.Refused && got.Err.Class != tc.class {
				t.Errorf("%d %s: photos %+v, want %s", tc.status, tc.code, got, tc.outcome)
			}
		})
	}
}

// TestMissingStatus reads statuses of photos that are incomplete or malformed.
func TestMissingStatus(t *testing.T) {
	tests := map[string]struct {
		reason, says string
		// id is the id found for the photos; empty if the outcome is still open.
		id string
	}{
		"an id as text":    {"a number may be a string", `{"status":"PUBLISH_COMPLETE","publicaly_available_post_id":["77"]}`, "77"},
		"the right name":   {"the misspelling may be corrected", `{"status":"PUBLISH_COMPLETE","publicly_available_post_id":[78]}`, "78"},
		"invalid id":       {"the id would be part of a URL", `{"status":"PUBLISH_COMPLETE","publicaly_available_post_id":["../7"]}`, ticket},
		"no state":         {"an unknown state may change", `{}`, ""},
		"an unknown state": {"an unknown state may change", `{"status":"SOMETHING"}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d, p := newDesk(t)
			d.says[pathStatus] = saying(tc.says)
			job := deskJob(v1alpha1.TikTokOptions{}, photoFile(t, 64, 64))
			got := prepareAndPublish(t, p, job)
			if got.Outcome != platforms.Accepted || got.OperationID != ticket || d.seen[pathStatus] != nil {
				t.Fatalf("got %+v, want the ticket before another request", got)
			}
			job.OperationID = got.OperationID
			found, err := p.Lookup(t.Context(), job)
			if found.ExternalID != tc.id || (err != nil) != (tc.id == "") || err != nil && class(err) != platforms.ClassUnknown {
				t.Errorf("%s: got %+v, %v", tc.reason, found, err)
			}
		})
	}
}
