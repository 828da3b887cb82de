// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	linkedID   = "17841400000000002"
	linkedHost = "/instagram/graph.facebook.com"
	linkedPath = linkedHost + "/v25.0/" + linkedID
	// uploadFolder is the base path of uploads.
	uploadFolder = "/instagram/rupload.facebook.com/ig-api-upload/v25.0/"
)

// linked creates an account connected through its Page, and returns its token.
func (b *box) linked() string {
	b.t.Helper()
	r := b.control(http.MethodPut, "/accounts/instagram/"+linkedID, `{"login":"facebook","username":"linked"}`, http.StatusCreated)
	return r.text("data", "access_token")
}

func TestInstagramLinkedAccount(t *testing.T) {
	b := start(t, "")
	token := b.linked()
	shown := b.control(http.MethodGet, "/accounts/instagram/"+linkedID, "", http.StatusOK)
	if shown.at("data", "expires_at") != nil || shown.text("data", "login") != "facebook" {
		t.Errorf("the token of a Page does not end: %s", shown.body)
	}
	account := map[string]any{"id": linkedID, "username": "linked", "name": "linked", "profile_picture_url": b.http.URL + "/_assets/avatar/instagram/" + linkedID + ".svg"}
	fields := "id,username,name,profile_picture_url"
	page := b.call(http.MethodGet, linkedHost+"/v25.0/me?fields=id,name,instagram_business_account{"+fields+"}", token, "", "")
	pages := b.call(http.MethodGet, linkedHost+"/v25.0/me/accounts?fields=id,name,access_token,instagram_business_account{"+fields+"}", token, "", "")
	user := b.call(http.MethodGet, linkedPath+"?fields="+fields, token, "", "")
	for name, got := range map[string]any{
		"the Page": page.at("instagram_business_account"), "the Pages": pages.at("data", "0", "instagram_business_account"), "the account": user.at(),
	} {
		if diff := cmp.Diff(any(account), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if pages.text("data", "0", "access_token") != token || page.text("id") == linkedID || page.text("id") != pages.text("data", "0", "id") {
		t.Errorf("the Page is %s and %s", page.body, pages.body)
	}
	for name, r := range map[string]reply{
		"a field of the other way to log in": b.call(http.MethodGet, linkedPath+"?fields=user_id", token, "", ""),
		"the Page has no media":              b.call(http.MethodPost, linkedHost+"/v25.0/me/media", token, formType, "image_url=http://a.b/c.jpg"),
		"another version":                    b.call(http.MethodGet, linkedHost+"/v27.0/me", token, "", ""),
		"a token that lives for ever":        b.call(http.MethodGet, linkedHost+"/refresh_access_token?grant_type=ig_refresh_token", token, "", ""),
	} {
		if r.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}

// TestInstagramLoginsDoNotMix uses each login flow's tokens at the other flow's host.
func TestInstagramLoginsDoNotMix(t *testing.T) {
	b := start(t, "")
	token := b.linked()
	for _, r := range []reply{
		b.call(http.MethodGet, "/instagram/v25.0/me", token, "", ""),
		b.call(http.MethodGet, "/instagram/refresh_access_token?grant_type=ig_refresh_token", token, "", ""),
		b.call(http.MethodPost, "/instagram/v25.0/"+linkedID+"/media", token, formType, "image_url=http://a.b/c.jpg"),
		b.read("instagram", linkedHost+"/v25.0/me"),
		b.form("instagram", linkedHost+"/v25.0/"+instagramID+"/media", url.Values{"image_url": {"http://a.b/c.jpg"}}),
	} {
		if r.status != http.StatusBadRequest || r.at("error", "code") != 190.0 {
			t.Errorf("%d %s, want code 190", r.status, r.body)
		}
	}
	for _, tt := range []struct{ path, body string }{
		{"/accounts/instagram/5", `{"login":"google"}`},
		{"/accounts/threads/5", `{"login":"facebook"}`},
		{"/accounts/instagram/" + instagramID, `{"login":"facebook"}`},
	} {
		b.control(http.MethodPut, tt.path, tt.body, http.StatusBadRequest)
	}
	b.control(http.MethodPut, "/accounts/instagram/"+linkedID, `{"login":"facebook","quota":1}`, http.StatusOK)
}

func TestInstagramPublishingThroughAPage(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 40, 40)
	s := newShelf(t, map[string][]byte{"a.jpg": picture})
	token := b.linked()
	id := b.call(http.MethodPost, linkedPath+"/media", token, formType, "caption=hello&image_url="+s.url+"/a.jpg").text("id")
	if r := b.call(http.MethodGet, linkedHost+"/v25.0/"+id+"?fields=status_code", token, "", ""); r.text("status_code") != "FINISHED" {
		t.Errorf("status: %d %s", r.status, r.body)
	}
	post := b.call(http.MethodPost, linkedPath+"/media_publish", token, formType, "creation_id="+id).text("id")
	read := b.call(http.MethodGet, linkedHost+"/v25.0/"+post+"?fields=permalink,caption", token, "", "")
	if read.text("caption") != "hello" || b.call(http.MethodGet, strings.TrimPrefix(read.text("permalink"), b.http.URL), "", "", "").status != http.StatusOK {
		t.Errorf("the post: %s", read.body)
	}
	list := b.call(http.MethodGet, linkedPath+"/media?limit=1", token, "", "")
	limit := b.call(http.MethodGet, linkedPath+"/content_publishing_limit?fields=quota_usage,config", token, "", "")
	if diff := cmp.Diff([]string{post}, list.ids()); diff != "" || limit.at("data", "0", "quota_usage") != 1.0 {
		t.Errorf("the listing %s, the limit %s (-want +got):\n%s", list.body, limit.body, diff)
	}
	b.fault(`{"platform":"instagram","operation":"create","kind":"rate_limit","account":"` + linkedID + `","retry_after_s":120}`)
	r := b.call(http.MethodPost, linkedPath+"/media", token, formType, "image_url="+s.url+"/a.jpg")
	usage := r.header.Get("X-Business-Use-Case-Usage")
	if r.at("error", "code") != 80002.0 || !strings.Contains(usage, `"estimated_time_to_regain_access":2`) {
		t.Errorf("the limit of calls: %s, %s", r.body, usage)
	}
}

// igUpload uploads a file to a waiting container.
func (b *box) igUpload(path string, headers map[string]string, content []byte) (reply, error) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.http.URL+path, bytes.NewReader(content))
	if err != nil {
		b.t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(answer)}, err
}

// awaiting creates a container awaiting an upload, and returns its ID and the upload path.
func (b *box) awaiting(token string) (id, path string) {
	b.t.Helper()
	r := b.call(http.MethodPost, linkedPath+"/media", token, formType, "media_type=REELS&upload_type=resumable&caption=hello&thumb_offset=1000")
	id, path = r.text("id"), strings.TrimPrefix(r.text("uri"), b.http.URL)
	if r.status != http.StatusOK || path != uploadFolder+id {
		b.t.Fatalf("%d %s", r.status, r.body)
	}
	return id, path
}

func uploadHeaders(token string, size int) map[string]string {
	return map[string]string{"Authorization": "OAuth " + token, "offset": "0", "file_size": strconv.Itoa(size)}
}

func (b *box) linkedStatus(token, id string) string {
	b.t.Helper()
	return b.call(http.MethodGet, linkedHost+"/v25.0/"+id+"?fields=status_code", token, "", "").text("status_code")
}

func TestInstagramUpload(t *testing.T) {
	b, film := start(t, ""), mp4Of("isom", 64, 48, 5*time.Second)
	token := b.linked()
	id, path := b.awaiting(token)
	b.clock.Step(time.Hour)
	if got := b.linkedStatus(token, id); got != "IN_PROGRESS" {
		t.Errorf("while nothing has come it is %s", got)
	}
	r, err := b.igUpload(path, uploadHeaders(token, len(film)), film)
	if err != nil || r.status != http.StatusOK || r.at("success") != true {
		t.Fatalf("%d %s %v", r.status, r.body, err)
	}
	b.clock.Step(videoWork - time.Millisecond)
	if got := b.linkedStatus(token, id); got != "IN_PROGRESS" {
		t.Errorf("the work begins when the bytes are there, and after a while it is %s", got)
	}
	b.clock.Step(time.Millisecond)
	if got := b.linkedStatus(token, id); got != "FINISHED" {
		t.Errorf("then it is %s", got)
	}
	if r, err := b.igUpload(path, uploadHeaders(token, len(film)), film); err != nil || r.status != http.StatusBadRequest {
		t.Errorf("a second upload: %d %s %v", r.status, r.body, err)
	}
	if r := b.call(http.MethodPost, linkedPath+"/media_publish", token, formType, "creation_id="+id); r.status != http.StatusOK {
		t.Errorf("publish: %d %s", r.status, r.body)
	}
	media := b.control(http.MethodGet, "/posts", "", http.StatusOK).list("data", "0", "media")
	if diff := cmp.Diff([]any{file(film, "video/mp4")}, media); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInstagramUploadRefusals(t *testing.T) {
	b, film := start(t, ""), mp4Of("isom", 64, 48, 5*time.Second)
	token := b.linked()
	id, path := b.awaiting(token)
	old, oldPath := b.awaiting(token)
	b.control(http.MethodPut, "/accounts/instagram/"+linkedID, "", http.StatusOK)
	other := b.control(http.MethodPut, "/accounts/instagram/3", `{"login":"facebook"}`, http.StatusCreated).text("data", "access_token")
	good := uploadHeaders(token, len(film))
	with := func(name, value string) map[string]string {
		out := maps.Clone(good)
		out[name] = value
		return out
	}
	tests := []struct {
		name, reason, path string
		headers            map[string]string
		content            []byte
		status             int
	}{
		{"Bearer", "the host has its own name for it", path, with("Authorization", "Bearer "+token), film, 401},
		{"no token", "whose container is it", path, with("Authorization", ""), film, 401},
		{"a token of Instagram Login", "it has no uploads", path, with("Authorization", "OAuth instagram-access-demo"), film, 401},
		{"another's token", "nor may others upload", path, with("Authorization", "OAuth "+other), film, 404},
		{"another container", "there is none", uploadFolder + "1", good, film, 404},
		{"another version", "there is none", strings.Replace(path, "v25.0", "v27.0", 1), good, film, 404},
		{"another address", "there is none", "/instagram/rupload.facebook.com/video-upload/v25.0/" + id, good, film, 404},
		{"no size", "it must be said", path, with("file_size", ""), film, 400},
		{"a size of nothing", "a file has bytes", path, with("file_size", "0"), nil, 400},
		{"fewer bytes", "the size is a promise", path, with("file_size", strconv.Itoa(len(film)+1)), film, 400},
		{"more bytes", "in both directions", path, with("file_size", strconv.Itoa(len(film)-1)), film, 400},
		{"in the middle", "it begins with the first byte", path, with("offset", "10"), film, 400},
		{"no offset", "it must be said", path, with("offset", ""), film, 400},
		{"larger than a video", "300 MB", path, with("file_size", "400000000"), film, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := b.igUpload(tt.path, tt.headers, tt.content)
			if err != nil || r.status != tt.status || r.text("debug_info", "type") == "" || r.text("debug_info", "message") == "" || r.at("debug_info", "retriable") != false {
				t.Errorf("%s: %d %s %v, want %d", tt.reason, r.status, r.body, err, tt.status)
			}
		})
	}
	if r, err := b.igUpload(path, good, film); err != nil || r.status != http.StatusOK {
		t.Errorf("after all that: %d %s %v", r.status, r.body, err)
	}
	b.clock.Step(24 * time.Hour)
	if r, err := b.igUpload(oldPath, good, film); err != nil || r.status != http.StatusBadRequest || b.linkedStatus(token, old) != "EXPIRED" {
		t.Errorf("a day later: %d %s %v", r.status, r.body, err)
	}
}

// TestInstagramAfterARestart restarts with one file in transit, one pending upload and one published post.
func TestInstagramAfterARestart(t *testing.T) {
	film, dir := mp4Of("isom", 64, 48, 5*time.Second), t.TempDir()
	b := start(t, dir)
	s := newShelf(t, map[string][]byte{"a.mp4": film, "a.jpg": jpegOf(t, 40, 40)})
	token := b.linked()
	out := b.igReady(query("caption=out&image_url=" + s.url + "/a.jpg"))
	post := b.igPublish(out).text("id")
	waiting, path := b.awaiting(token)
	s.hold = make(chan struct{})
	coming := b.igContainer(query("media_type=REELS&caption=coming&video_url=" + s.url + "/a.mp4"))
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	close(s.hold)

	c := &box{t: t, clock: b.clock}
	c.open(dir)
	if got := c.igSettled(coming); got != "FINISHED" {
		t.Errorf("what was on its way is %s", got)
	}
	if r := c.igPublish(out); r.at("error", "error_subcode") != 2207008.0 {
		t.Errorf("publishing once more: %d %s", r.status, r.body)
	}
	if r, err := c.igUpload(path, uploadHeaders(token, len(film)), film); err != nil || r.status != http.StatusOK {
		t.Errorf("an upload that was awaited: %d %s %v", r.status, r.body, err)
	}
	c.clock.Step(videoWork)
	if got := c.linkedStatus(token, waiting); got != "FINISHED" {
		t.Errorf("then it is %s", got)
	}
	second := c.igPublish(coming).text("id")
	if diff := cmp.Diff([]string{second, post}, c.read("instagram", instagramPath+"/media").ids()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	media := c.control(http.MethodGet, "/posts", "", http.StatusOK).list("data", "1", "media")
	if diff := cmp.Diff([]any{file(film, "video/mp4")}, media); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
