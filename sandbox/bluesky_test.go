// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	blueskyDID  = "did:plc:heralddemo234567234567ab"
	blueskyName = "herald-demo.test"
	xrpc        = "/bluesky/xrpc/com.atproto."
	skyKey      = "3kaaaaaaaaaa"
	skyPosts    = "?repo=" + blueskyDID + "&collection=app.bsky.feed.post"
)

// blueskyError returns an expected error from Bluesky.
func blueskyError(status int, name string) is { return is{status, "error=" + name, "message=*"} }

// bearer returns the token that requests send for an access token from the control API: on Bluesky, a session's token.
func (b *box) bearer(platform, token string) string {
	b.t.Helper()
	if platform != "bluesky" {
		return token
	}
	handle, password, _ := strings.Cut(token, ":")
	return b.signIn(handle, password).want(b.t, "a session", 200).text("accessJwt")
}

func (b *box) signIn(identifier, password string) reply {
	b.t.Helper()
	return b.call(http.MethodPost, xrpc+"server.createSession", "", jsonType, fmt.Sprintf(`{"identifier":%q,"password":%q}`, identifier, password))
}

// sky is a session of the demo account on Bluesky.
type sky struct {
	*box

	token string
}

func (b *box) sky() sky {
	b.t.Helper()
	return sky{b, b.bearer("bluesky", demo(b.t, "bluesky").AccessToken)}
}

func (s sky) send(method, body string) reply {
	s.t.Helper()
	return s.call(http.MethodPost, xrpc+method, s.token, jsonType, body)
}

func (s sky) query(method string) reply {
	s.t.Helper()
	return s.call(http.MethodGet, xrpc+method, s.token, "", "")
}

// put creates a record under a key, unless there is one.
func (s sky) put(key, record string) reply {
	s.t.Helper()
	return s.send("repo.putRecord", `{"repo":"`+blueskyDID+`","collection":"app.bsky.feed.post","rkey":"`+key+`","swapRecord":null,"record":`+record+`}`)
}

// skyRecord returns a record with a text and other fields.
func skyRecord(text string, fields ...string) string {
	return `{"$type":"app.bsky.feed.post","text":` + fmt.Sprintf("%q", text) + `,"createdAt":"2026-12-01T09:00:00.123Z"` + strings.Join(append([]string{""}, fields...), ",") + `}`
}

// upload uploads a file, and returns the reference to it.
func (s sky) upload(mime string, file []byte) string {
	s.t.Helper()
	r := s.call(http.MethodPost, xrpc+"repo.uploadBlob", s.token, mime, string(file)).want(s.t, "the upload", 200, "blob.size=*")
	return skyBlob(r.text("blob", "ref", "$link"), r.text("blob", "mimeType"), len(file))
}

func skyBlob(cid, mime string, size int) string {
	return fmt.Sprintf(`{"$type":"blob","ref":{"$link":%q},"mimeType":%q,"size":%d}`, cid, mime, size)
}

func skyImages(images ...string) string {
	for i := range images {
		images[i] = `{"image":` + images[i] + `,"alt":"a \"cat\" & 50 %","aspectRatio":{"width":4,"height":3}}`
	}
	return `"embed":{"$type":"app.bsky.embed.images","images":[` + strings.Join(images, ",") + `]}`
}

func TestBlueskySessions(t *testing.T) {
	b := start(t, "")
	const password = "demo-demo-demo-demo"
	b.signIn(blueskyName, "demo-demo-demo-dem2").want(t, "another password", blueskyError(401, "AuthenticationRequired")...)
	b.signIn("nobody.test", password).want(t, "another handle", blueskyError(401, "AuthenticationRequired")...)
	b.signIn(blueskyDID, password).want(t, "a DID is a name, too", 200, "handle="+blueskyName)
	b.call(http.MethodPost, xrpc+"server.createSession", "", formType, "identifier=a").want(t, "the body is JSON", blueskyError(400, "InvalidRequest")...)
	b.call(http.MethodPost, xrpc+"server.createSession", "", jsonType, `{"identifer":"a"}`).want(t, "a misspelled field has no effect", blueskyError(400, "InvalidRequest")...)
	begun := b.signIn("@"+strings.ToUpper(blueskyName), password).want(t, "case does not matter", 200, "did="+blueskyDID, "accessJwt=*")
	s := sky{b, begun.text("accessJwt")}
	s.query("server.getSession").want(t, "the account", 200, "did="+blueskyDID, "handle="+blueskyName)
	b.clock.Step(2 * time.Hour)
	s.query("server.getSession").want(t, "a session of two hours", blueskyError(400, "ExpiredToken")...)
	renewal := sky{b, begun.text("refreshJwt")}
	renewed := renewal.send("server.refreshSession", "").want(t, "it is renewed", 200, "!"+s.token)
	renewal.send("server.refreshSession", "").want(t, "a refresh token works once", blueskyError(400, "InvalidToken")...)
	s.token = renewed.text("accessJwt")
	s.query("server.getSession").want(t, "the new session", 200)
	sky{b, renewed.text("refreshJwt")}.send("server.deleteSession", "").want(t, "the session is ended", 200)
	s.query("server.getSession").want(t, "it is over", blueskyError(400, "InvalidToken")...)
	sky{b, demo(t, "bluesky").AccessToken}.query("server.getSession").want(t, "an app password is no session", blueskyError(400, "InvalidToken")...)
	b.set("bluesky", `{"token_ttl_s":60}`)
	short := b.sky()
	b.clock.Step(time.Minute)
	short.query("server.getSession").want(t, "an account's sessions may be shorter", blueskyError(400, "ExpiredToken")...)
	b.call(http.MethodGet, xrpc+"server.createSession", "", "", "").want(t, "a call has one method", blueskyError(400, "InvalidRequest")...)
	b.page("/bluesky/xrpc/com.atproto.sync.getRepo").want(t, "other methods are not simulated", blueskyError(400, "InvalidRequest")...)
	b.page("/bluesky/").want(t, "nor is anything else", 404)
}

// TestBlueskyKeys writes records under a key that the client chooses.
func TestBlueskyKeys(t *testing.T) {
	b := start(t, "")
	s := b.sky()
	const key = skyKey + "2"
	made := s.put(key, skyRecord("hello")).want(t, "a new record", 200, "uri=at://"+blueskyDID+"/app.bsky.feed.post/"+key, "commit.rev=*", "RateLimit-Limit: 3000", "RateLimit-Policy: 3000;w=300")
	cid := made.text("cid")
	s.put(key, skyRecord("hello")).want(t, "the same record changes nothing", 200, "cid="+cid, "commit=")
	s.put(key, skyRecord("hello you")).want(t, "the key is taken", blueskyError(400, "InvalidSwap")...)
	other := `{"repo":"` + blueskyName + `","collection":"app.bsky.feed.post","rkey":"` + key + `","record":` + skyRecord("hello you")
	s.send("repo.putRecord", other+`,"swapRecord":"bafyreiother"}`).want(t, "the record is another one", blueskyError(400, "InvalidSwap")...)
	s.send("repo.putRecord", other+`}`).want(t, "records are not replaced here", blueskyError(400, "InvalidRequest")...)
	s.send("repo.createRecord", other+`}`).want(t, "nor by creating one", blueskyError(400, "InvalidRequest")...)
	same(t, "there is one post", 1, len(b.posted("bluesky")))
	s.query("repo.getRecord"+skyPosts+"&rkey="+key).want(t, "it is read by its key", 200, "cid="+cid, "value.text=hello")
	s.query("repo.getRecord"+skyPosts+"&rkey="+key+"&cid=bafyreiother").want(t, "another version of it", blueskyError(400, "RecordNotFound")...)
	s.send("repo.deleteRecord", `{"repo":"`+blueskyDID+`","collection":"app.bsky.feed.post","rkey":"`+key+`"}`).want(t, "it is deleted", 200, "commit.rev=*")
	s.query("repo.getRecord"+skyPosts+"&rkey="+key).want(t, "a deleted record is gone", blueskyError(400, "RecordNotFound")...)
	s.put(key, skyRecord("hello you")).want(t, "the key is free again", 200, "!"+cid)
	s.send("repo.createRecord", `{"repo":"`+blueskyName+`","collection":"app.bsky.feed.post","record":`+skyRecord("again")+`}`).want(t, "the server chooses a key", 200, "uri=*")
	b.set("bluesky", `{"quota":3}`)
	s.put(skyKey+"3", skyRecord("last")).want(t, "deleted posts count as well", 429, "error=RateLimitExceeded", "RateLimit-Limit: 6", "RateLimit-Remaining: 0")
	stranger := sky{b, b.bearer("bluesky", b.account("bluesky", numbered("bluesky", "7"), ""))}
	stranger.put(skyKey+"4", skyRecord("not mine")).want(t, "nobody writes to another's repository", blueskyError(401, "AuthenticationRequired")...)
}

func TestBlueskyRefuses(t *testing.T) {
	b := start(t, "")
	s := b.sky()
	bad := blueskyError(400, "InvalidRequest")
	facet := func(begin, end int, feature string) string {
		return fmt.Sprintf(`"facets":[{"index":{"byteStart":%d,"byteEnd":%d},"features":[%s]}]`, begin, end, feature)
	}
	const link = `{"$type":"app.bsky.richtext.facet#link","uri":"https://example.org/"}`
	picture := s.upload("image/jpeg", jpegOf(t, 4, 3))
	b.each(t, func(record string) reply { return s.put(skyKey+"2", record) }, []row{
		{"a text is required", `{"createdAt":"2026-12-01T09:00:00Z"}`, bad},
		{"so is a time", `{"text":"a"}`, bad},
		{"a time has a zone", `{"text":"a","createdAt":"2026-12-01T09:00:00"}`, bad},
		{"300 characters are the most", skyRecord(strings.Repeat("a", 301)), bad},
		{"3000 bytes are the most", skyRecord(strings.Repeat("👨‍👩‍👧", 170)), bad},
		{"the type is that of the collection", strings.Replace(skyRecord("a"), "feed.post", "feed.like", 1), bad},
		{"a misspelled field has no effect", skyRecord("a", `"langauges":["en"]`), bad},
		{"languages are tags", skyRecord("a", `"langs":["english!"]`), bad},
		{"three languages are the most", skyRecord("a", `"langs":["en","de","fr","es"]`), bad},
		{"a tag has no sign", skyRecord("a", `"tags":["#a"]`), bad},
		{"a facet ends in the text", skyRecord("abc", facet(0, 4, link)), bad},
		{"and is not empty", skyRecord("abc", facet(1, 1, link)), bad},
		{"and has whole characters", skyRecord("aé", facet(0, 2, link)), bad},
		{"and a feature", skyRecord("abc", facet(0, 3, "")), bad},
		{"of a known type", skyRecord("abc", facet(0, 3, strings.Replace(link, "#link", "#bold", 1))), bad},
		{"whose address is complete", skyRecord("abc", facet(0, 3, strings.Replace(link, "https://example.org/", "example.org", 1))), bad},
		{"a mention has a DID", skyRecord("abc", facet(0, 3, `{"$type":"app.bsky.richtext.facet#mention","did":"acme.test"}`)), bad},
		{"a hashtag has no sign", skyRecord("abc", facet(0, 3, `{"$type":"app.bsky.richtext.facet#tag","tag":"#abc"}`)), bad},
		{"a reply needs its posts", skyRecord("a", `"reply":{"root":{"uri":"at://`+blueskyDID+`/app.bsky.feed.post/`+skyKey+`7","cid":"b"},"parent":{"uri":"at://`+blueskyDID+`/app.bsky.feed.post/`+skyKey+`7","cid":"b"}}`), bad},
		{"quotes are not simulated", skyRecord("a", `"embed":{"$type":"app.bsky.embed.record"}`), bad},
		{"an image has an alt text", skyRecord("a", strings.Replace(skyImages(picture), `"alt"`, `"altText"`, 1)), bad},
		{"four images are the most", skyRecord("a", skyImages(picture, picture, picture, picture, picture)), bad},
		{"an image is no video", skyRecord("a", `"embed":{"$type":"app.bsky.embed.video","video":`+picture+`}`), bad},
		{"a shape has two sides", skyRecord("a", strings.Replace(skyImages(picture), `"height":3`, `"height":0`, 1)), bad},
		{"a card has a title", skyRecord("a", `"embed":{"$type":"app.bsky.embed.external","external":{"uri":"https://example.org/","description":""}}`), bad},
		{"a file has to exist", skyRecord("a", skyImages(skyBlob("bafkreiother", "image/jpeg", 9))), blueskyError(400, "BlobNotFound")},
		{"with its type", skyRecord("a", skyImages(strings.Replace(picture, "image/jpeg", "image/png", 1))), blueskyError(400, "InvalidMimeType")},
		{"and its size", skyRecord("a", skyImages(strings.Replace(picture, `"size":`, `"size":1`, 1))), blueskyError(400, "InvalidSize")},
	})
	s.put("first", skyRecord("a")).want(t, "a key is a TID", bad...)
	s.send("repo.putRecord", `{"repo":"`+blueskyDID+`","collection":"app.bsky.feed.like","rkey":"`+skyKey+`2","record":{}}`).want(t, "there are only posts", bad...)
	same(t, "nothing was published", 0, len(b.posted("bluesky")))
}

func TestBlueskyFiles(t *testing.T) {
	b := start(t, "")
	s := b.sky()
	file := jpegOf(t, 4, 3)
	picture := s.upload("application/octet-stream", file)
	same(t, "the type is that of the content, and the same bytes are the same file", picture, s.upload("image/png", file))
	_, rest, _ := strings.Cut(picture, `"$link":"`)
	cid, _, _ := strings.Cut(rest, `"`)
	same(t, "the id is that of raw bytes", true, strings.HasPrefix(cid, "bafkrei"))
	fetched := xrpc + "sync.getBlob?did=" + blueskyDID + "&cid=" + cid
	b.page(fetched).want(t, "a file without a post is not served", blueskyError(400, "InvalidRequest")...)
	s.put(skyKey+"2", skyRecord("look", skyImages(picture, picture))).want(t, "a file may be shown twice", 200)
	s.put(skyKey+"3", skyRecord("look again", skyImages(picture))).want(t, "and in another post", 200)
	same(t, "the file is served", string(file), b.page(fetched).want(t, "the file", 200, "Content-Type: image/jpeg").body)
	film := s.upload("video/mp4", movie("isom", 640, 480, 3*time.Second, 300_000))
	b.clock.Step(time.Hour)
	s.put(skyKey+"4", skyRecord("moves", `"embed":{"$type":"app.bsky.embed.video","video":`+film+`,"alt":"a cat"}`)).want(t, "an hour later, a file without a post is gone", blueskyError(400, "BlobNotFound")...)
	s.put(skyKey+"5", skyRecord("look", skyImages(picture))).want(t, "one of a post remains", 200)
	film = s.upload("video/mp4", movie("isom", 640, 480, 3*time.Second, 300_000))
	s.put(skyKey+"4", skyRecord("moves", `"embed":{"$type":"app.bsky.embed.video","video":`+film+`,"alt":"a cat"}`)).want(t, "it is uploaded again", 200)
	media, _ := field(b.posted("bluesky"), 3, "media").([]any)
	same(t, "the video has its alt text", "a cat", field(media, 0, "alt_text"))
	s.call(http.MethodPost, xrpc+"repo.uploadBlob", "", "image/jpeg", string(file)).want(t, "an upload needs a session", blueskyError(401, "AuthMissing")...)
}

func TestBlueskyReads(t *testing.T) {
	b := start(t, "")
	s := b.sky()
	address := func(key string) string { return "at://" + blueskyDID + "/app.bsky.feed.post/" + key }
	first := s.put(skyKey+"4", skyRecord("first")).want(t, "a post", 200).text("cid")
	ref := `{"uri":"` + address(skyKey+"4") + `","cid":"` + first + `"}`
	s.put(skyKey+"2", skyRecord("second", `"reply":{"root":`+ref+`,"parent":`+ref+`}`)).want(t, "a reply", 200)
	s.put(skyKey+"6", skyRecord("third")).want(t, "another post", 200)
	list := func(query string) []string {
		return s.query("repo.listRecords"+skyPosts+query).want(t, "the posts"+query, 200).each("records", "value", "text")
	}
	same(t, "keys are in order, the last one first", []string{"third", "first", "second"}, list(""))
	same(t, "from the first one", []string{"second", "first", "third"}, list("&reverse=true"))
	same(t, "one", []string{"third"}, list("&limit=1"))
	same(t, "those after a cursor", []string{"first", "second"}, list("&cursor="+skyKey+"6"))
	b.fault(`{"platform":"bluesky","operation":"list","kind":"stale_list","delay_ms":60000}`)
	same(t, "a listing that lags", []string{}, list(""))
	for why, query := range map[string]string{
		"100 are the most": skyPosts + "&limit=101", "a misspelled parameter has no effect": skyPosts + "&max=1",
		"no such account": "?repo=nobody.test&collection=app.bsky.feed.post", "there are only posts": "?repo=" + blueskyDID + "&collection=app.bsky.feed.like",
	} {
		s.query("repo.listRecords"+query).want(t, why, blueskyError(400, "InvalidRequest")...)
	}
	b.page(xrpc+"identity.resolveHandle?handle="+blueskyName).want(t, "handles are public", 200, "did="+blueskyDID)
	b.page(xrpc+"identity.resolveHandle?handle=nobody.test").want(t, "no such handle", blueskyError(400, "HandleNotFound")...)
	b.page(xrpc+"repo.getRecord?repo="+blueskyName+"&collection=app.bsky.actor.profile&rkey=self").want(t, "the profile", 200, "value.displayName=Herald Demo")
	b.page(xrpc+"server.describeServer").want(t, "the server", 200, "availableUserDomains.0=.test")
	b.page("/bluesky/profile/"+blueskyDID+"/post/"+skyKey+"6").want(t, "the public page", 200, "~third")
	b.page("/bluesky/profile/"+blueskyName).want(t, "an account's page", 302, "Location: /accounts/bluesky/"+blueskyDID)
}
