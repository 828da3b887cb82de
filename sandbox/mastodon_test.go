// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	mastodonStatuses = "/mastodon/api/v1/statuses"
	mastodonMedia    = "/mastodon/api/v1/media/"
	mastodonID       = "109300000000000001"
	mastodonListing  = "/mastodon/api/v1/accounts/" + mastodonID + "/statuses"
)

// mastodonError returns an expected error from Mastodon whose text contains the words.
func mastodonError(status int, words string) is { return is{status, "error=*", "~" + words} }

// toot posts a form to Mastodon.
func (b *box) toot(form string) reply {
	b.t.Helper()
	return b.as("mastodon", http.MethodPost, mastodonStatuses, formType, form)
}

// tooted posts a text and returns its id.
func (b *box) tooted(text string) string {
	b.t.Helper()
	return b.toot(url.Values{"status": {text}}.Encode()).want(b.t, "the post", 200).text("id")
}

// mastodonForm returns the form of an upload with a file and other fields.
func mastodonForm(t *testing.T, mime string, file []byte, fields ...string) (contentType, body string) {
	t.Helper()
	var out bytes.Buffer
	form := multipart.NewWriter(&out)
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", `form-data; name="file"; filename="file"`)
	header.Set("Content-Type", mime)
	part, err := form.CreatePart(header)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write(file) // writing to a buffer never fails
	for i := 0; i < len(fields); i += 2 {
		_ = form.WriteField(fields[i], fields[i+1])
	}
	_ = form.Close()
	return form.FormDataContentType(), out.String()
}

func (b *box) mastodonUpload(mime string, file []byte, fields ...string) reply {
	b.t.Helper()
	contentType, body := mastodonForm(b.t, mime, file, fields...)
	return b.as("mastodon", http.MethodPost, "/mastodon/api/v2/media", contentType, body)
}

// mastodonImage uploads an image and returns its id.
func (b *box) mastodonImage(fields ...string) string {
	b.t.Helper()
	return b.mastodonUpload("image/jpeg", jpegOf(b.t, 40, 30), fields...).want(b.t, "an image is processed at once", 200, "type=image", "url=*").text("id")
}

func TestMastodonText(t *testing.T) {
	b := start(t, "")
	made := b.toot(url.Values{
		"status": {" Fish & <chips>\n\nhttps://example.org/a?b=c&d=e #Top "}, "visibility": {"unlisted"}, "language": {"en"}, "spoiler_text": {"food"},
	}.Encode()).want(t, "the post", 200, "visibility=unlisted", "language=en", "spoiler_text=food", "sensitive=true", "in_reply_to_id=", "tags.0.name=top", "account.id="+mastodonID)
	id := made.text("id")
	html := made.text("content")
	same(t, "the HTML", `<p>Fish &amp; &lt;chips&gt;</p><p><a href="https://example.org/a?b=c&amp;d=e" target="_blank" rel="nofollow noopener" translate="no">`+
		`<span class="invisible">https://</span><span class="">example.org/a?b=c&amp;d=e</span><span class="invisible"></span></a> #Top</p>`, html)
	b.read("mastodon", mastodonStatuses+"/"+id+"/source").want(t, "the source is trimmed", 200, "text=Fish & <chips>\n\nhttps://example.org/a?b=c&d=e #Top", "spoiler_text=food")
	b.read("mastodon", mastodonListing).want(t, "the account's posts", 200, "0.id="+id, "0.visibility=unlisted")
	b.as("mastodon", http.MethodDelete, mastodonStatuses+"/"+id, "", "").want(t, "it is deleted with its source", 200, "text=*")
	b.read("mastodon", mastodonStatuses+"/"+id).want(t, "a deleted post is gone", mastodonError(404, "Record not found")...)
}

func TestMastodonRefuses(t *testing.T) {
	b := start(t, "")
	image := b.mastodonImage()
	film := b.mastodonUpload("video/mp4", movie("isom", 640, 480, 3*time.Second, 300_000)).want(t, "a video is processed later", 202, "url=").text("id")
	b.each(t, b.toot, []row{
		{"a post needs a text or files", "status=+", mastodonError(422, "Text can't be blank")},
		{"500 characters are the most", "status=" + strings.Repeat("a", 501), mastodonError(422, "character limit of 500")},
		{"the warning counts too", "status=" + strings.Repeat("a", 500) + "&spoiler_text=b", mastodonError(422, "character limit of 500")},
		{"an address counts as 23", "status=" + strings.Repeat("a", 477) + "+http://a.de", mastodonError(422, "character limit of 500")},
		{"visibilities are an enumeration", "status=a&visibility=friends", mastodonError(422, "Visibility")},
		{"an unknown language would be ignored", "status=a&language=xx", mastodonError(400, "ignores the language")},
		{"polls are not simulated", "status=a&poll[options][]=b", mastodonError(400, "not simulated")},
		{"nor are scheduled posts", "status=a&scheduled_at=2030-01-01T00:00:00Z", mastodonError(400, "not simulated")},
		{"a reply needs a post", "status=a&in_reply_to_id=1", mastodonError(404, "trying to reply")},
		{"a file has to exist", "status=a&media_ids[]=1", mastodonError(422, "not found or already attached")},
		{"each file appears once", "status=a&media_ids[]=" + image + "&media_ids[]=" + image, mastodonError(422, "not found or already attached")},
		{"a video has to be processed", "status=a&media_ids[]=" + film, mastodonError(422, "not finished processing")},
		{"four files are the most", "status=a" + strings.Repeat("&media_ids[]="+image, 5), mastodonError(422, "more than 4")},
	})
	b.clock.Step(time.Minute)
	b.toot("status=a&media_ids[]="+film+"&media_ids[]="+image).want(t, "a video is alone", mastodonError(422, "Cannot attach a video")...)
	b.call(http.MethodPost, mastodonStatuses, demo(t, "mastodon").AccessToken, "text/plain", "status=a").want(t, "the body is a form or JSON", mastodonError(400, "neither")...)
	same(t, "no post was published", 0, len(b.posted("mastodon")))
}

func TestMastodonLengths(t *testing.T) {
	b := start(t, "")
	b.each(t, func(text string) reply { return b.toot(url.Values{"status": {text}}.Encode()) }, []row{
		{"a family is one character", strings.Repeat("👨‍👩‍👧", 500), is{200}},
		{"a long address counts as 23", strings.Repeat("a", 476) + " https://example.org/" + strings.Repeat("a", 400), is{200}},
		{"a mention counts without its domain", strings.Repeat("a", 494) + " @acme@" + strings.Repeat("b", 40) + ".example", is{200}},
	})
}

// TestMastodonKeys repeats calls with an Idempotency-Key.
func TestMastodonKeys(t *testing.T) {
	b := start(t, "")
	post := func(token, text string) reply {
		t.Helper()
		r, err := b.do(b.request(t.Context(), http.MethodPost, b.http.URL+mastodonStatuses, strings.NewReader("status="+text),
			"Authorization: Bearer "+token, "Content-Type: "+formType, "Idempotency-Key: k"))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	own := demo(t, "mastodon").AccessToken
	first := post(own, "hello").want(t, "the first call", 200).text("id")
	post(own, "again").want(t, "within an hour, the earlier post is returned", 200, "id="+first)
	post(b.account("mastodon", "7", ""), "hello").want(t, "another account's keys are other keys", 200, "!"+first)
	b.clock.Step(time.Hour)
	second := post(own, "hello").want(t, "after an hour, the key is forgotten", 200, "!"+first).text("id")
	b.as("mastodon", http.MethodDelete, mastodonStatuses+"/"+second, "", "").want(t, "the post is deleted", 200)
	post(own, "hello").want(t, "the deleted post is not found", mastodonError(404, "Record not found")...)
}

func TestMastodonMedia(t *testing.T) {
	b := start(t, "")
	image := b.mastodonImage("description", "a picture", "focus", "-0.42,0.69")
	b.read("mastodon", mastodonMedia+image).want(t, "a file without a post", 200, "description=a picture", "meta.focus.x=-0.42", "meta.original.width=40")
	b.as("mastodon", http.MethodPut, mastodonMedia+image, formType, "description=another&focus=0,1").want(t, "it can be changed", 200, "description=another", "meta.focus.y=1")
	film := b.mastodonUpload("video/mp4", movie("isom", 640, 480, 3*time.Second, 300_000)).want(t, "a video is processed", 202, "url=").text("id")
	b.read("mastodon", mastodonMedia+film).want(t, "it is not ready", 206, "url=")
	b.clock.Step(time.Minute)
	b.read("mastodon", mastodonMedia+film).want(t, "it is ready", 200, "url=*")
	b.toot("media_ids[]="+image+"&spoiler_text=look").want(t, "a warning without a text becomes the text", 200, "spoiler_text=", "content=<p>look</p>", "media_attachments.0.id="+image)
	b.read("mastodon", mastodonMedia+image).want(t, "a file of a post is not found", mastodonError(404, "Record not found")...)
	b.toot("status=a&media_ids[]="+image).want(t, "a file belongs to one post", mastodonError(422, "already attached")...)
	b.clock.Step(25 * time.Hour)
	b.read("mastodon", mastodonMedia+film).want(t, "a file without a post is kept for a day", 404)
	for why, tt := range map[string]struct {
		mime   string
		file   []byte
		fields []string
		want   is
	}{
		"a text is no file":                {"text/plain", []byte("hello"), nil, mastodonError(422, "content type is invalid")},
		"1500 characters are the most":     {"image/jpeg", jpegOf(t, 4, 4), []string{"description", strings.Repeat("é", 1501)}, mastodonError(422, "Description is too long")},
		"the focal point is in the image":  {"image/jpeg", jpegOf(t, 4, 4), []string{"focus", "0,1.1"}, mastodonError(422, "Focus")},
		"a misspelled field has no effect": {"image/jpeg", jpegOf(t, 4, 4), []string{"descripton", "a"}, mastodonError(400, "descripton")},
	} {
		b.mastodonUpload(tt.mime, tt.file, tt.fields...).want(t, why, tt.want...)
	}
	b.set("mastodon", `{"processing_error":"failed"}`)
	b.mastodonUpload("image/jpeg", jpegOf(t, 4, 4)).want(t, "processing fails", mastodonError(422, "Error processing")...)
}

func TestMastodonListing(t *testing.T) {
	b := start(t, "")
	first := b.tooted("first")
	reply := b.toot("status=second&in_reply_to_id="+first).want(t, "a reply", 200, "in_reply_to_id="+first, "in_reply_to_account_id="+mastodonID).text("id")
	hidden := b.toot("status=third&visibility=private").want(t, "a post for followers", 200).text("id")
	list := func(query string) (ids []string) {
		r := b.read("mastodon", mastodonListing+query).want(t, query, 200)
		for i := 0; r.text(strconv.Itoa(i), "id") != ""; i++ {
			ids = append(ids, r.text(strconv.Itoa(i), "id"))
		}
		return ids
	}
	same(t, "all posts", []string{hidden, reply, first}, list(""))
	same(t, "older posts", []string{first}, list("?max_id="+reply))
	same(t, "newer posts", []string{hidden}, list("?since_id="+reply))
	same(t, "replies to oneself are no replies", []string{hidden, reply, first}, list("?exclude_replies=true&exclude_reblogs=true"))
	address := b.http.URL + mastodonListing + "?limit=1&"
	b.read("mastodon", mastodonListing+"?limit=1").want(t, "the addresses of other pages", 200,
		"Link: <"+address+"max_id="+hidden+`>; rel="next", <`+address+"min_id="+hidden+`>; rel="prev"`)
	b.page(mastodonListing).want(t, "others do not see the third", 200, "0.id="+reply)
	b.page(mastodonStatuses+"/"+hidden).want(t, "another account cannot read the file", 404)
	b.read("mastodon", mastodonListing+"?limit=41").want(t, "Mastodon would reduce the limit", 400)
	b.read("mastodon", mastodonListing+"?max=1").want(t, "a misspelled parameter has no effect", 400)
	b.read("mastodon", "/mastodon/api/v1/accounts/1/statuses").want(t, "no such account", 404)
	b.page(mastodonStatuses+"/"+reply+"/context").want(t, "the thread", 200, "ancestors.0.id="+first, "descendants=[]")
	b.page("/mastodon/api/v2/instance").want(t, "the limits are public", 200, "configuration.statuses.max_characters=500")
	b.page("/mastodon/api/v1/accounts/lookup?acct=herald_demo").want(t, "so are accounts", 200, "id="+mastodonID)
	b.set("mastodon", `{"quota":3}`)
	b.toot("status=fourth").want(t, "the quota is used up", 429, "X-RateLimit-Remaining: 0", "X-RateLimit-Limit: 3")
}

// TestMastodonScopes checks the permissions of a token.
func TestMastodonScopes(t *testing.T) {
	b := start(t, "")
	app := b.call(http.MethodPost, "/mastodon/api/v1/apps", "", jsonType, `{"client_name":"a","redirect_uris":["https://a.example/back"],"scopes":"read"}`).
		want(t, "an app is registered", 200, "client_id=*", "redirect_uri=https://a.example/back")
	id, secret := app.text("client_id"), app.text("client_secret")
	b.call(http.MethodPost, "/mastodon/api/v1/apps", "", formType, "client_name=a&redirect_uris=back").want(t, "the redirect URI is absolute", 422)
	code := func() string {
		query := url.Values{"client_id": {id}, "redirect_uri": {"https://a.example/back"}, "scope": {"read"}, "response_type": {"code"}, "account": {mastodonID}}
		to, err := url.Parse(b.page("/mastodon/oauth/authorize?"+query.Encode()).want(t, "the consent", 302).header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		return to.Query().Get("code")
	}
	redeem := func(code, secret string) reply {
		return b.call(http.MethodPost, "/mastodon/oauth/token", "", formType, url.Values{
			"grant_type": {"authorization_code"}, "code": {code}, "client_id": {id}, "client_secret": {secret}, "redirect_uri": {"https://a.example/back"},
		}.Encode())
	}
	redeem(code(), "wrong").want(t, "the secret is checked", 401, "error=invalid_client")
	once := code()
	token := redeem(once, secret).want(t, "the code is exchanged", 200, "scope=read", "token_type=Bearer").text("access_token")
	redeem(once, secret).want(t, "a code works once", 400, "error=invalid_grant")
	b.call(http.MethodGet, "/mastodon/api/v1/accounts/verify_credentials", token, "", "").want(t, "reading is permitted", 200, "id="+mastodonID)
	b.call(http.MethodPost, mastodonStatuses, token, formType, "status=a").want(t, "writing is not", mastodonError(403, "outside the authorized scopes")...)
	redeem(code(), secret).want(t, "an app has one token of an account", 200, "access_token="+token)
	revoke := func(token, secret string) reply {
		return b.call(http.MethodPost, "/mastodon/oauth/revoke", "", formType, url.Values{"token": {token}, "client_id": {id}, "client_secret": {secret}}.Encode())
	}
	revoke(token, "wrong").want(t, "an app revokes its tokens", 403, "error=unauthorized_client")
	revoke(demo(t, "mastodon").AccessToken, secret).want(t, "and no others", 403, "error=unauthorized_client")
	revoke(token, secret).want(t, "the token is revoked", 200)
	b.call(http.MethodGet, "/mastodon/api/v1/accounts/verify_credentials", token, "", "").want(t, "the token is invalid", 401)
	redeem(code(), secret).want(t, "the next consent has another token", 200, "!"+token)
}

// TestMastodonConsent opens the consent page with requests that an app must not make.
func TestMastodonConsent(t *testing.T) {
	b := start(t, "")
	id := b.call(http.MethodPost, "/mastodon/api/v1/apps", "", formType, "client_name=Herald&redirect_uris=https://a.example/back&scopes=read+write:media").
		want(t, "an app is registered", 200).text("client_id")
	for why, tc := range map[string]struct {
		name, value string
		want        string
	}{
		"the page has the app's name":                 {"scope", "read:accounts write:media", "<strong>Herald</strong>"},
		"an app has to be registered":                 {"client_id", "1", "unknown client"},
		"with its redirect URI":                       {"redirect_uri", "https://a.example/other", "match client redirect URI"},
		"and its scopes":                              {"scope", "write:statuses", "scope is invalid"},
		"a plain code challenge protects from nobody": {"code_challenge", "abc", "must be S256"},
	} {
		query := url.Values{"client_id": {id}, "redirect_uri": {"https://a.example/back"}, "scope": {"read"}, "response_type": {"code"}}
		query.Set(tc.name, tc.value)
		if page := b.page("/mastodon/oauth/authorize?" + query.Encode()); !strings.Contains(page.body, tc.want) {
			t.Errorf("%s: %s", why, page.body)
		}
	}
	b.page("/mastodon/.well-known/oauth-authorization-server").want(t, "the server announces PKCE", 200, "code_challenge_methods_supported.0=S256")
}

// TestMastodonAppTokens requests tokens for an app itself, which shows whether the server still knows the app.
func TestMastodonAppTokens(t *testing.T) {
	b := start(t, "")
	app := b.call(http.MethodPost, "/mastodon/api/v1/apps", "", formType, "client_name=a&redirect_uris=https://a.example/back&scopes=read").want(t, "an app", 200)
	b.each(t, func(form string) reply {
		return b.call(http.MethodPost, "/mastodon/oauth/token", "", formType, "grant_type=client_credentials&"+form)
	}, []row{
		{"the server has it", "client_id=" + app.text("client_id") + "&client_secret=" + app.text("client_secret") + "&scope=read:accounts", is{200, "scope=read:accounts"}},
		{"not with this scope", "client_id=" + app.text("client_id") + "&client_secret=" + app.text("client_secret") + "&scope=write", is{400, "error=invalid_scope"}},
		{"it has no other", "client_id=1&client_secret=2", is{401, "error=invalid_client"}},
	})
}
