// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestXTakesMediaAsJSON uploads base64 in JSON, as X's own SDK does.
func TestXTakesMediaAsJSON(t *testing.T) {
	b := start(t, "")
	file := still(t, "png", 40, 40)
	encoded := base64.StdEncoding.EncodeToString
	body := fmt.Sprintf(`{"media":%q,"media_category":"tweet_image"}`, encoded(file))
	r := b.call(http.MethodPost, xMedia, demoAccess, jsonType, body)
	if r.status != http.StatusOK || r.at("data", "size") != float64(len(file)) {
		t.Errorf("an image in one request: %d %s", r.status, r.body)
	}
	id := b.xInitialize("image/png", "tweet_image", len(file)).text("data", "id")
	appendPath, half := xMedia+"/"+id+"/append", len(file)/2
	tests := []struct {
		name, reason, body string
		status             int
	}{
		{"a number", "the index is an integer in the schema", fmt.Sprintf(`{"segment_index":0,"media":%q}`, encoded(file[:half])), 200},
		{"a text", "some clients send what a form would have", fmt.Sprintf(`{"segment_index":"1","media":%q}`, encoded(file[half:])), 200},
		{"no base64", "nothing else stands for bytes", `{"segment_index":2,"media":"#"}`, 400},
		{"unknown field", "the schema allows no others", `{"segment_index":2,"media":"","command":"APPEND"}`, 400},
		{"no JSON", "as the type says", `segment_index=2`, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := b.call(http.MethodPost, appendPath, demoAccess, jsonType, tt.body); r.status != tt.status {
				t.Errorf("%s: %d %s, want %d", tt.reason, r.status, r.body, tt.status)
			}
		})
	}
	if r := b.call(http.MethodPost, xMedia+"/"+id+"/finalize", demoAccess, jsonType, `{}`); r.status != http.StatusOK {
		t.Errorf("twitter-api-v2 sends a body with finalize: %d %s", r.status, r.body)
	}
	film := b.xSent("image/gif", "tweet_gif", xPicture(t, "gif", 40, 40, 1))
	if r := b.get(xMedia + "?media_id=" + film); r.status != http.StatusOK || r.at("data", "processing_info") == nil {
		t.Errorf("the command may be left out: %d %s", r.status, r.body)
	}
}

// TestXTokensByJSON connects, renews and revokes with JSON bodies, as twitter-api-v2 does.
func TestXTokensByJSON(t *testing.T) {
	b := start(t, "")
	call := func(path, body string) reply {
		return b.call(http.MethodPost, "/x/2/oauth2/"+path, "", jsonType, body)
	}
	back := b.call(http.MethodGet, authorizePath(url.Values{
		"scope": {"tweet.read users.read offline.access"}, "code_challenge_method": {"s256"},
	}), "", "", "")
	at, err := url.Parse(back.header.Get("Location"))
	if err != nil || back.status != http.StatusFound {
		t.Fatalf("consent with s256: %d %s", back.status, back.body)
	}
	first := call("token", fmt.Sprintf(`{"grant_type":"authorization_code","client_id":"tests","code":%q,"code_verifier":%q,`+
		`"redirect_uri":"http://127.0.0.1/back?a=b"}`, at.Query().Get("code"), verifier))
	if first.status != http.StatusOK || first.text("refresh_token") == "" {
		t.Fatalf("exchange: %d %s", first.status, first.body)
	}
	second := call("token", fmt.Sprintf(`{"grant_type":"refresh_token","client_id":"tests","refresh_token":%q}`, first.text("refresh_token")))
	if second.status != http.StatusOK {
		t.Fatalf("refresh: %d %s", second.status, second.body)
	}
	if r := call("revoke", fmt.Sprintf(`{"client_id":"tests","token":%q}`, second.text("access_token"))); r.at("revoked") != true {
		t.Errorf("revoke: %d %s", r.status, r.body)
	}
}

// TestXShowsWhatIsAskedFor requests fields under the names in X's pages and its OpenAPI 2.167.
func TestXShowsWhatIsAskedFor(t *testing.T) {
	b := start(t, "")
	first := b.post("first")
	reply := b.tweet(fmt.Sprintf(`{"text":"second","reply":{"in_reply_to_tweet_id":%q},"media":{"media_ids":[%q]}}`, first, b.xImage(still(t, "png", 30, 20)))).text("data", "id")
	references := []any{map[string]any{"type": "replied_to", "id": first}}
	timeline := "/x/2/users/" + demoID + "/tweets"
	tests := []struct {
		name, reason, path string
		at                 []string
		want               any
	}{
		{"old field", "X's prose and most clients", timeline + "?tweet.fields=referenced_tweets", []string{"data", "0", "referenced_tweets"}, references},
		{"new expansion", "X's OpenAPI", timeline + "?post.fields=note_post&expansions=referenced_posts", []string{"data", "0", "referenced_posts"}, references},
		{"new includes", "what it leads to", timeline + "?expansions=referenced_posts", []string{"includes", "posts", "0", "id"}, first},
		{"old includes", "go-twitter's", timeline + "?expansions=referenced_tweets.id,author_id", []string{"includes", "tweets", "0", "id"}, first},
		{"author", "gotwi's", timeline + "?expansions=author_id&user.fields=username", []string{"includes", "users", "0", "username"}, "herald_demo"},
		{"author once", "each object once", timeline + "?expansions=author_id", []string{"includes", "users", "1"}, nil},
		{"media", "with its fields", timeline + "?expansions=attachments.media_keys&media.fields=width,alt_text", []string{"includes", "media", "0", "width"}, 30.0},
		{"nothing there", "no post has a place or poll", timeline + "?expansions=geo.place_id,attachments.poll_ids&place.fields=name&poll.fields=id", []string{"includes"}, map[string]any{}},
		{"no expansion", "then nothing is included", timeline, []string{"includes"}, nil},
		{"fields with nothing to say", "are left out", timeline + "?tweet.fields=note_tweet,public_metrics,lang", []string{"data", "0", "note_tweet"}, nil},
		{"first posts alone", "replies can be left out", timeline + "?exclude=replies", []string{"data", "0", "id"}, first},
		{"until", "the range has an end", timeline + "?until_id=" + reply, []string{"data", "0", "id"}, first},
		{"not yet", "and a beginning", timeline + "?start_time=2030-01-01T00:00:00Z", []string{"meta", "result_count"}, 0.0},
		{"one post", "with the same parameters", "/x/2/tweets/" + reply + "?tweet.fields=author_id&expansions=author_id", []string{"includes", "users", "0", "id"}, demoID},
		{"one that is none", "told within a 200", "/x/2/tweets/1", []string{"errors", "0", "title"}, "Not Found Error"},
		{"me with my newest post", "X lists two expansions", "/x/2/users/me?expansions=most_recent_tweet_id", []string{"includes", "tweets", "0", "id"}, reply},
		{"me with the field", "without it", "/x/2/users/me?user.fields=most_recent_post_id,location", []string{"data", "most_recent_post_id"}, reply},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.get(tt.path)
			if diff := cmp.Diff(tt.want, r.at(tt.at...)); r.status != http.StatusOK || diff != "" {
				t.Errorf("%s: %d %s (-want +got):\n%s", tt.reason, r.status, r.body, diff)
			}
		})
	}
	for name, path := range map[string]string{
		"expansion": timeline + "?expansions=colour", "media field": timeline + "?media.fields=colour", "time": timeline + "?end_time=now",
		"parameter of one post": "/x/2/tweets/" + first + "?max_results=5", "id": "/x/2/tweets/abc",
	} {
		if r := b.get(path); r.status != http.StatusBadRequest {
			t.Errorf("unknown %s: %d %s", name, r.status, r.body)
		}
	}
}

// TestXTakesWhatIsDocumented sends documented options that have no effect here.
func TestXTakesWhatIsDocumented(t *testing.T) {
	lenient, strict := startLenient(t), start(t, "")
	tests := []struct{ name, reason, path, body string }{
		{"poll", "gotwi's", "/x/2/tweets", `{"text":"which?","poll":{"options":["a","b"],"duration_minutes":60}}`},
		{"options", "of X's own form", "/x/2/tweets", `{"text":"a","made_with_ai":true,"reply_settings":"following"}`},
		{"shared media", "of an upload", xMedia + "/initialize", `{"media_type":"image/png","media_category":"tweet_image","total_bytes":9,"shared":false}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := lenient.call(http.MethodPost, tt.path, demoAccess, jsonType, tt.body); r.status >= 300 {
				t.Errorf("%s: %d %s", tt.reason, r.status, r.body)
			}
			if r := strict.call(http.MethodPost, tt.path, demoAccess, jsonType, tt.body); r.status != http.StatusBadRequest {
				t.Errorf("what is not simulated shows in a test: %d %s", r.status, r.body)
			}
		})
	}
	if r := lenient.tweet(`{"text":"a","colour":"red"}`); r.status != http.StatusBadRequest {
		t.Errorf("X knows its fields: %d %s", r.status, r.body)
	}
}

func TestXMetadata(t *testing.T) {
	b := start(t, "")
	id := b.xImage(still(t, "png", 40, 40))
	tests := []struct {
		name, reason, body string
		status             int
	}{
		{"alt text", "twitter-api-v2 and X's own SDK", `{"id":"` + id + `","metadata":{"alt_text":{"text":"a cat"}}}`, 200},
		{"too long", "1000 characters", `{"id":"` + id + `","metadata":{"alt_text":{"text":"` + strings.Repeat("a", 1001) + `"}}}`, 400},
		{"no text", "an object with a text", `{"id":"` + id + `","metadata":{"alt_text":"a cat"}}`, 400},
		{"no media", "of what", `{"id":"1","metadata":{"alt_text":{"text":"a cat"}}}`, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := b.call(http.MethodPost, "/x/2/media/metadata", demoAccess, jsonType, tt.body); r.status != tt.status {
				t.Errorf("%s: %d %s, want %d", tt.reason, r.status, r.body, tt.status)
			}
		})
	}
}
