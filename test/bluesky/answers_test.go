// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

// answer is a server's response to a call.
type answer struct {
	status int
	header http.Header
	fields map[string]any
}

// String returns the status, and the name of the error if there is one.
func (a answer) String() string {
	if name, _ := a.fields["error"].(string); name != "" {
		return fmt.Sprint(a.status, " ", name)
	}
	return fmt.Sprint(a.status)
}

func (a answer) text(field string) string {
	out, _ := a.fields[field].(string)
	return out
}

// call calls a com.atproto method, such as "GET server.getSession". kind is the body's media type.
func (s *server) call(t *testing.T, method, token, kind, body string) answer {
	t.Helper()
	verb, name, _ := strings.Cut(method, " ")
	r, err := http.NewRequestWithContext(t.Context(), verb, s.URL+"/xrpc/com.atproto."+name, strings.NewReader(body))
	must.Succeed(t, err)
	if body == "" {
		r.Body = http.NoBody
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	must.Succeed(t, err)
	out := answer{status: resp.StatusCode, header: resp.Header}
	_ = json.Unmarshal(content, &out.fields) // some responses have no body, or a file
	return out
}

const jsonType = "application/json"

// signIn begins a session.
func (s *server) signIn(t *testing.T, a *account) (access, refresh string) {
	t.Helper()
	begun := s.call(t, "POST server.createSession", "", jsonType, fmt.Sprintf(`{"identifier":%q,"password":%q}`, a.Handle, a.AppPassword))
	if begun.text("did") != a.DID || begun.text("handle") != a.Handle || begun.fields["active"] != true {
		t.Fatalf("the session is %s %v", begun, begun.fields)
	}
	return begun.text("accessJwt"), begun.text("refreshJwt")
}

// wanted describes a call and the response of both servers: the status, then the error's name or the names of fields. A
// field after an exclamation mark must be missing. In the call, words in braces are replaced by the test's values.
type wanted struct{ reason, method, token, body, want string }

var answers = map[string]wanted{
	"wrong password":   {"the response does not show which of the two is wrong", "POST server.createSession", "", `{"identifier":"{handle}","password":"aaaa-bbbb-cccc-dddd"}`, "401 AuthenticationRequired"},
	"unknown handle":   {"the response does not show whether the account exists", "POST server.createSession", "", `{"identifier":"nobody.test","password":"aaaa-bbbb-cccc-dddd"}`, "401 AuthenticationRequired"},
	"no identifier":    {"the lexicon requires one", "POST server.createSession", "", `{"password":"aaaa-bbbb-cccc-dddd"}`, "400 InvalidRequest"},
	"no password":      {"the lexicon requires one", "POST server.createSession", "", `{"identifier":"{handle}"}`, "400 InvalidRequest"},
	"by id":            {"a DID is a name, too", "POST server.createSession", "", `{"identifier":"{did}","password":"{password}"}`, "200 accessJwt refreshJwt did handle active"},
	"another method":   {"a call has one method", "GET server.createSession", "", "", "400 InvalidRequest"},
	"unknown call":     {"the server forwards calls to other services, and there are none", "GET server.nothing", "", "", "400 InvalidRequest"},
	"session":          {"the response names the account", "GET server.getSession", "{access}", "", "200 did handle active"},
	"no session":       {"the caller has to sign in", "GET server.getSession", "", "", "401 AuthMissing"},
	"unknown session":  {"the caller has to sign in again", "GET server.getSession", "nonsense", "", "400 InvalidToken"},
	"refresh token":    {"a refresh token only renews sessions", "GET server.getSession", "{refresh}", "", "400 InvalidToken"},
	"refreshed wrong":  {"an access token does not renew a session", "POST server.refreshSession", "{access}", "", "400 InvalidToken"},
	"refreshed nobody": {"there is no session", "POST server.refreshSession", "", "", "401 AuthMissing"},

	"put again":        {"an equal record changes nothing", "POST repo.putRecord", "{access}", `{"repo":"{did}",{post},"swapRecord":null,"record":{hello}}`, "200 uri cid validationStatus !commit"},
	"put another":      {"the key is taken", "POST repo.putRecord", "{access}", `{"repo":"{did}",{post},"swapRecord":null,"record":{"text":"hi","createdAt":"2026-11-29T09:00:00Z"}}`, "400 InvalidSwap"},
	"put elsewhere":    {"every account has its own repository", "POST repo.putRecord", "{access}", `{"repo":"zoe.test",{post},"record":{hello}}`, "401 AuthenticationRequired"},
	"put nowhere":      {"the account is not on this server", "POST repo.putRecord", "{access}", `{"repo":"did:plc:zzzzzzzzzzzzzzzzzzzzzzzz",{post},"record":{hello}}`, "403 AccountNotFound"},
	"put by nobody":    {"posts need an author", "POST repo.putRecord", "", `{"repo":"{did}",{post},"record":{hello}}`, "401 AuthMissing"},
	"put without body": {"the lexicon requires one", "POST repo.putRecord", "{access}", "", "400 InvalidRequest"},
	"other key":        {"keys of posts have a form", "POST repo.putRecord", "{access}", `{"repo":"{did}","collection":"app.bsky.feed.post","rkey":"first","record":{hello}}`, "400 InvalidRequest"},
	"other type":       {"the type is that of the collection", "POST repo.putRecord", "{access}", `{"repo":"{did}",{free},"record":{"$type":"app.bsky.feed.like","text":"a","createdAt":"2026-11-29T09:00:00Z"}}`, "400 InvalidRequest"},
	"no text":          {"the lexicon requires one", "POST repo.putRecord", "{access}", `{"repo":"{did}",{free},"record":{"createdAt":"2026-11-29T09:00:00Z"}}`, "400 InvalidRequest"},
	"no zone":          {"a time has a zone", "POST repo.putRecord", "{access}", `{"repo":"{did}",{free},"record":{"text":"a","createdAt":"2026-11-29T09:00:00"}}`, "400 InvalidRequest"},
	"other language":   {"a language is a tag of BCP 47", "POST repo.putRecord", "{access}", `{"repo":"{did}",{free},"record":{"text":"a","langs":["english!"],"createdAt":"2026-11-29T09:00:00Z"}}`, "400 InvalidRequest"},
	"four languages":   {"the lexicon allows three", "POST repo.putRecord", "{access}", `{"repo":"{did}",{free},"record":{"text":"a","langs":["en","de","fr","es"],"createdAt":"2026-11-29T09:00:00Z"}}`, "400 InvalidRequest"},
	"no alt text":      {"the lexicon requires one", "POST repo.putRecord", "{access}", `{"repo":"{did}",{free},"record":{"text":"a","createdAt":"2026-11-29T09:00:00Z","embed":{"$type":"app.bsky.embed.images","images":[{"image":{blob}}]}}}`, "400 InvalidRequest"},
	"picture as video": {"a video has another type", "POST repo.putRecord", "{access}", `{"repo":"{did}",{free},"record":{"text":"a","createdAt":"2026-11-29T09:00:00Z","embed":{"$type":"app.bsky.embed.video","video":{blob}}}}`, "400 InvalidRequest"},
	"missing file":     {"a file has to be uploaded first", "POST repo.putRecord", "{access}", `{"repo":"{did}",{free},"record":{"text":"a","createdAt":"2026-11-29T09:00:00Z","embed":{"$type":"app.bsky.embed.images","images":[{"alt":"","image":{lost}}]}}}`, "400 BlobNotFound"},
	"other format":     {"the type is that of the upload", "POST repo.putRecord", "{access}", `{"repo":"{did}",{free},"record":{"text":"a","createdAt":"2026-11-29T09:00:00Z","embed":{"$type":"app.bsky.embed.images","images":[{"alt":"","image":{png}}]}}}`, "400 InvalidMimeType"},
	"other size":       {"the size is that of the upload", "POST repo.putRecord", "{access}", `{"repo":"{did}",{free},"record":{"text":"a","createdAt":"2026-11-29T09:00:00Z","embed":{"$type":"app.bsky.embed.images","images":[{"alt":"","image":{larger}}]}}}`, "400 InvalidSize"},

	"record":           {"reading is public", "GET repo.getRecord?repo={handle}&collection=app.bsky.feed.post&rkey={key}", "", "", "200 uri cid value"},
	"missing record":   {"the error proves the absence", "GET repo.getRecord?repo={did}&collection=app.bsky.feed.post&rkey=3222222222222", "", "", "400 RecordNotFound"},
	"record of no one": {"the account may be on another server", "GET repo.getRecord?repo=did:plc:zzzzzzzzzzzzzzzzzzzzzzzz&collection=app.bsky.feed.post&rkey={key}", "", "", "400 InvalidRequest"},
	"list":             {"reading is public", "GET repo.listRecords?repo={did}&collection=app.bsky.feed.post", "", "", "200 records cursor"},
	"list of no one":   {"the account may be on another server", "GET repo.listRecords?repo=did:plc:zzzzzzzzzzzzzzzzzzzzzzzz&collection=app.bsky.feed.post", "", "", "400 InvalidRequest"},
	"long list":        {"the greatest limit is 100", "GET repo.listRecords?repo={did}&collection=app.bsky.feed.post&limit=101", "", "", "400 InvalidRequest"},
	"empty list":       {"the least limit is 1", "GET repo.listRecords?repo={did}&collection=app.bsky.feed.post&limit=0", "", "", "400 InvalidRequest"},
	"deleted twice":    {"the record does not exist either way", "POST repo.deleteRecord", "{access}", `{"repo":"{did}",{free}}`, "200 !commit"},
	"handle":           {"mentions need the account's id", "GET identity.resolveHandle?handle=zoe.test", "", "", "200 did"},
	"no such handle":   {"the server has all of this domain", "GET identity.resolveHandle?handle=nobody.test", "", "", "400 HandleNotFound"},
	"upload by nobody": {"files need an owner", "POST repo.uploadBlob", "", "a", "401 AuthMissing"},
	"unused file":      {"the server only serves files of records", "GET sync.getBlob?did={did}&cid={cid}", "", "", "400 InvalidRequest"},
}

// TestAnswers makes the same calls to both servers and checks that they give the same responses.
func TestAnswers(t *testing.T) {
	const key, free = "3kaaaaaaaaaa2", "3kaaaaaaaaaa3"
	const hello = `{"$type":"app.bsky.feed.post","text":"hello","createdAt":"2026-11-29T09:00:00Z"}`
	inPosts := func(key string) string { return `"collection":"app.bsky.feed.post","rkey":"` + key + `"` }
	for server, begin := range servers {
		t.Run(server, func(t *testing.T) {
			node(t)
			s := begin(t, "bakery.test", "zoe.test")
			a := &s.Accounts[0]
			access, refresh := s.signIn(t, a)
			made := s.call(t, "POST repo.putRecord", access, jsonType, `{"repo":"`+a.DID+`",`+inPosts(key)+`,"swapRecord":null,"record":`+hello+`}`)
			if made.String() != "200" || made.fields["commit"] == nil || made.text("uri") != "at://"+a.DID+"/app.bsky.feed.post/"+key {
				t.Fatalf("a post: %s %v", made, made.fields)
			}
			gray, err := picture(t, 1).Bytes.Open(t.Context(), 0, picture(t, 1).Size)
			must.Succeed(t, err)
			content, err := io.ReadAll(gray)
			must.Succeed(t, err)
			uploaded := s.call(t, "POST repo.uploadBlob", access, "application/octet-stream", string(content))
			blob, err := json.Marshal(uploaded.fields["blob"])
			must.Succeed(t, err)
			var file struct {
				Ref struct {
					Link string `json:"$link"`
				} `json:"ref"`
			}
			must.Succeed(t, json.Unmarshal(blob, &file))
			fill := strings.NewReplacer(
				"{did}", a.DID, "{handle}", a.Handle, "{password}", a.AppPassword, "{access}", access, "{refresh}", refresh, "{key}", key,
				"{post}", inPosts(key), "{free}", inPosts(free), "{hello}", hello, "{cid}", file.Ref.Link, "{blob}", string(blob),
				"{png}", strings.Replace(string(blob), "image/jpeg", "image/png", 1),
				"{larger}", strings.Replace(string(blob), `"size":`, `"size":1`, 1),
				"{lost}", `{"$type":"blob","ref":{"$link":"bafkreibjfgx2gprinfvicegelk5kosd6y2frmqpqzwqkg7usac74l3t2v4"},"mimeType":"image/png","size":10}`,
			)
			for name, tc := range answers {
				t.Run(name, func(t *testing.T) {
					kind := jsonType
					if tc.body == "" {
						kind = ""
					}
					got := s.call(t, fill.Replace(tc.method), fill.Replace(tc.token), kind, fill.Replace(tc.body))
					tc.check(t, got)
				})
			}
		})
	}
}

func (w *wanted) check(t *testing.T, got answer) {
	t.Helper()
	status, fields, _ := strings.Cut(w.want, " ")
	if status != "200" {
		if got.String() != w.want || got.text("message") == "" {
			t.Errorf("%s: got %s %v, want %s", w.reason, got, got.fields, w.want)
		}
		return
	}
	if got.String() != status {
		t.Errorf("%s: got %s %v", w.reason, got, got.fields)
	}
	for field := range strings.FieldsSeq(fields) {
		name, isMissing := strings.CutPrefix(field, "!")
		if _, has := got.fields[name]; has == isMissing {
			t.Errorf("%s: the field %s is in %v: %t", w.reason, name, got.fields, has)
		}
	}
}
