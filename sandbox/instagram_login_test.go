// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
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
	return b.account("instagram", linkedID, `{"login":"facebook","username":"linked"}`)
}

func TestInstagramLinkedAccount(t *testing.T) {
	b := start(t, "")
	token := b.linked()
	b.control(http.MethodGet, "/accounts/instagram/"+linkedID, "", 200).
		want(t, "a Page's token does not expire", "data.expires_at=", "data.login=facebook")
	get := func(path string) reply { return b.call(http.MethodGet, path, token, "", "") }
	account := map[string]any{
		"id": linkedID, "username": "linked", "name": "linked", "profile_picture_url": b.http.URL + "/_assets/avatar/instagram/" + linkedID + ".svg",
	}
	const fields = "id,username,name,profile_picture_url"
	page := get(linkedHost + "/v25.0/me?fields=id,name,instagram_business_account{" + fields + "}")
	pages := get(linkedHost + "/v25.0/me/accounts?fields=id,name,access_token,instagram_business_account{" + fields + "}")
	same(t, "the account of the Page", any(account), page.at("instagram_business_account"))
	same(t, "the account in the list of Pages", any(account), pages.at("data", "0", "instagram_business_account"))
	same(t, "the account itself", any(account), get(linkedPath+"?fields="+fields).at())
	pages.want(t, "the Page", "data.0.access_token="+token, "data.0.id="+page.text("id"), "data.0.id!"+linkedID)
	get(linkedPath+"?fields=user_id").want(t, "a field of Instagram Login", 400)
	get(linkedHost+"/v27.0/me").want(t, "an unknown version", 400)
	get(linkedHost+"/refresh_access_token?grant_type=ig_refresh_token").want(t, "a token that does not expire", 400)
	b.call(http.MethodPost, linkedHost+"/v25.0/me/media", token, formType, "image_url=http://a.b/c.jpg").want(t, "a Page has no media", 400)
	b.control(http.MethodPut, "/accounts/instagram/"+linkedID, `{"login":"facebook","quota":1}`, http.StatusOK)
}

// TestInstagramLoginsDoNotMix uses each login flow's tokens at the other flow's host.
func TestInstagramLoginsDoNotMix(t *testing.T) {
	b := start(t, "")
	token, form := b.linked(), query("image_url=http://a.b/c.jpg")
	for _, r := range []reply{
		b.call(http.MethodGet, "/instagram/v25.0/me", token, "", ""),
		b.call(http.MethodGet, "/instagram/refresh_access_token?grant_type=ig_refresh_token", token, "", ""),
		b.call(http.MethodPost, "/instagram/v25.0/"+linkedID+"/media", token, formType, form.Encode()),
		b.read("instagram", linkedHost+"/v25.0/me"),
		b.form("instagram", linkedHost+"/v25.0/"+instagramID+"/media", form),
	} {
		r.want(t, "the other flow's token", graphError(190, "")...)
	}
}

func TestInstagramPublishingThroughAPage(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40)})
	token := b.linked()
	get := func(path string) reply { return b.call(http.MethodGet, path, token, "", "") }
	post := func(path, form string) reply { return b.call(http.MethodPost, linkedPath+path, token, formType, form) }
	id := post("/media", "caption=hello&image_url="+s.url+"/a.jpg").text("id")
	same(t, "the status", "FINISHED", b.linkedStatus(token, id))
	id = post("/media_publish", "creation_id="+id).text("id")
	read := get(linkedHost+"/v25.0/"+id+"?fields=permalink,caption").want(t, "the post", "caption=hello")
	b.page(strings.TrimPrefix(read.text("permalink"), b.http.URL)).want(t, "the permalink", 200)
	same(t, "the listing", []string{id}, get(linkedPath+"/media?limit=1").ids())
	get(linkedPath+"/content_publishing_limit?fields=quota_usage,config").want(t, "the limit", "data.0.quota_usage=1")
	b.fault(`{"platform":"instagram","operation":"create","kind":"rate_limit","account":"` + linkedID + `","retry_after_s":120}`)
	post("/media", "image_url="+s.url+"/a.jpg").want(t, "the limit of calls", "error.code=80002",
		`X-Business-Use-Case-Usage~"estimated_time_to_regain_access":2`)
}

// igUpload uploads a file to a waiting container.
func (b *box) igUpload(path string, headers map[string]string, content []byte) reply {
	b.t.Helper()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		lines = append(lines, name+": "+headers[name])
	}
	return b.transfer(http.MethodPost, b.http.URL+path, bytes.NewReader(content), lines...)
}

// awaiting creates a container awaiting an upload, and returns its ID and the upload path.
func (b *box) awaiting(token string) (id, path string) {
	b.t.Helper()
	r := b.call(http.MethodPost, linkedPath+"/media", token, formType, "media_type=REELS&upload_type=resumable&caption=hello&thumb_offset=1000")
	id = r.text("id")
	r.want(b.t, "the container", 200, "uri="+b.http.URL+uploadFolder+id)
	return id, uploadFolder + id
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
	same(t, "before the upload", "IN_PROGRESS", b.linkedStatus(token, id))
	b.igUpload(path, uploadHeaders(token, len(film)), film).want(t, "the upload", 200, "success=true")
	b.clock.Step(videoWork - time.Millisecond)
	same(t, "processing starts after the upload", "IN_PROGRESS", b.linkedStatus(token, id))
	b.clock.Step(time.Millisecond)
	same(t, "after processing", "FINISHED", b.linkedStatus(token, id))
	b.igUpload(path, uploadHeaders(token, len(film)), film).want(t, "a second upload", 400)
	b.call(http.MethodPost, linkedPath+"/media_publish", token, formType, "creation_id="+id).want(t, "publishing", 200)
	same(t, "the file in the control API", any(mediaOf("video/mp4", film)), field(b.posted("instagram"), 0, "media"))
}

func TestInstagramUploadRefusals(t *testing.T) {
	b, film := start(t, ""), mp4Of("isom", 64, 48, 5*time.Second)
	token := b.linked()
	id, path := b.awaiting(token)
	old, oldPath := b.awaiting(token)
	other, size := b.account("instagram", "3", `{"login":"facebook"}`), len(film)
	good := uploadHeaders(token, size)
	for _, tt := range []struct {
		why, path, header, value string // the header that differs from those of an accepted upload
		status                   int
	}{
		{"the scheme is OAuth", path, "Authorization", "Bearer " + token, 401},
		{"a token is required", path, "Authorization", "", 401},
		{"Instagram Login has no uploads", path, "Authorization", "OAuth instagram-access-demo", 401},
		{"another account's token", path, "Authorization", "OAuth " + other, 404},
		{"an unknown container", uploadFolder + "1", "offset", "0", 404},
		{"an unknown version", strings.Replace(path, "v25.0", "v27.0", 1), "offset", "0", 404},
		{"an unknown address", "/instagram/rupload.facebook.com/video-upload/v25.0/" + id, "offset", "0", 404},
		{"a size is required", path, "file_size", "", 400},
		{"a file is not empty", path, "file_size", "0", 400},
		{"fewer bytes than the size", path, "file_size", strconv.Itoa(size + 1), 400},
		{"more bytes than the size", path, "file_size", strconv.Itoa(size - 1), 400},
		{"an upload starts with the first byte", path, "offset", "10", 400},
		{"an offset is required", path, "offset", "", 400},
		{"a video has at most 300 MB", path, "file_size", "400000000", 400},
	} {
		headers, content := maps.Clone(good), film
		headers[tt.header] = tt.value
		if headers["file_size"] == "0" {
			content = nil
		}
		b.igUpload(tt.path, headers, content).want(t, tt.why, tt.status, "debug_info.type=*", "debug_info.message=*", "debug_info.retriable=false")
	}
	b.igUpload(path, good, film).want(t, "the accepted upload", 200)
	b.clock.Step(24 * time.Hour)
	b.igUpload(oldPath, good, film).want(t, "an upload after a day", 400)
	same(t, "a container after a day", "EXPIRED", b.linkedStatus(token, old))
}
