// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestXAcceptsMediaAsJSON uploads base64 in JSON, as X's own SDK does.
func TestXAcceptsMediaAsJSON(t *testing.T) {
	b := start(t, "")
	file := pngOf(t, 40, 40)
	encoded := base64.StdEncoding.EncodeToString
	send := func(path string) func(string) reply {
		return func(body string) reply { return b.as("x", http.MethodPost, path, jsonType, body) }
	}
	send(xMedia)(fmt.Sprintf(`{"media":%q,"media_category":"tweet_image"}`, encoded(file))).
		want(t, "an image in one request", 200, fmt.Sprint("data.size=", len(file)))
	id, half := b.xStarted("image/png", "tweet_image", len(file)), len(file)/2
	b.each(t, send(xMedia+"/"+id+"/append"), []row{
		{"the index is an integer in the schema", fmt.Sprintf(`{"segment_index":0,"media":%q}`, encoded(file[:half])), is{200}},
		{"some clients send the index as a string", fmt.Sprintf(`{"segment_index":"1","media":%q}`, encoded(file[half:])), is{200}},
		{"bytes are encoded as base64", `{"segment_index":2,"media":"#"}`, is{400}},
		{"unknown fields are rejected", `{"segment_index":2,"media":"","command":"APPEND"}`, is{400}},
		{"the body has the announced type", `segment_index=2`, is{400}},
	})
	send(xMedia+"/"+id+"/finalize")("{}").want(t, "twitter-api-v2 sends a body with finalize", 200)
	film := b.xSent("image/gif", "tweet_gif", xPicture(t, "gif", 40, 40, 1))
	b.get(xMedia+"?media_id="+film).want(t, "the command may be omitted", 200, "data.processing_info=*")
	id = b.xImage(file)
	b.each(t, send("/x/2/media/metadata"), []row{
		{"twitter-api-v2 and X's own SDK set alt texts", `{"id":"` + id + `","metadata":{"alt_text":{"text":"a cat"}}}`, is{200}},
		{
			"an alt text has at most 1000 characters",
			`{"id":"` + id + `","metadata":{"alt_text":{"text":"` + strings.Repeat("a", 1001) + `"}}}`,
			is{400},
		},
		{"an alt text is an object", `{"id":"` + id + `","metadata":{"alt_text":"a cat"}}`, is{400}},
		{"an alt text belongs to an upload", `{"id":"1","metadata":{"alt_text":{"text":"a cat"}}}`, is{400}},
	})
}

// TestXReturnsRequestedFields requests fields under the names in X's pages and its OpenAPI 2.167.
func TestXReturnsRequestedFields(t *testing.T) {
	b := start(t, "")
	first := b.post("first")
	answer := b.tweet(xBody("second", first, b.xImage(pngOf(t, 30, 20)))).text("data", "id")
	references := `=[{"id":"` + first + `","type":"replied_to"}]`
	b.each(t, b.get, []row{
		{"a field of X's prose and most clients", timeline + "?tweet.fields=referenced_tweets", is{200, "data.0.referenced_tweets" + references}},
		{
			"an expansion of X's OpenAPI", timeline + "?post.fields=note_post&expansions=referenced_posts",
			is{200, "data.0.referenced_posts" + references, "includes.posts.0.id=" + first},
		},
		{
			"go-twitter's expansions", timeline + "?expansions=referenced_tweets.id,author_id",
			is{200, "includes.tweets.0.id=" + first},
		},
		{
			"gotwi's author, included once", timeline + "?expansions=author_id&user.fields=username",
			is{200, "includes.users#1", "includes.users.0.username=herald_demo"},
		},
		{
			"media fields", timeline + "?expansions=attachments.media_keys&media.fields=width,alt_text",
			is{200, "includes.media.0.width=30"},
		},
		{
			"no post has a place or a poll",
			timeline + "?expansions=geo.place_id,attachments.poll_ids&place.fields=name&poll.fields=id",
			is{200, "includes={}"},
		},
		{"without an expansion, users are omitted", timeline, is{200, "includes="}},
		{
			"fields without a value are omitted", timeline + "?tweet.fields=note_tweet,public_metrics,lang",
			is{200, "data.0.note_tweet="},
		},
		{"replies can be excluded", timeline + "?exclude=replies", is{200, "data#1", "data.0.id=" + first}},
		{"a range can have an end", timeline + "?until_id=" + answer, is{200, "data#1", "data.0.id=" + first}},
		{"a range can have a start time", timeline + "?start_time=2030-01-01T00:00:00Z", is{200, "meta.result_count=0"}},
		{
			"a single post has the same parameters", "/x/2/tweets/" + answer + "?tweet.fields=author_id&expansions=author_id",
			is{200, "includes.users.0.id=" + demoID},
		},
		{"an unknown post is an error within a 200", "/x/2/tweets/1", is{200, "errors.0.title=Not Found Error"}},
		{"the user's newest post", "/x/2/users/me?expansions=most_recent_tweet_id", is{200, "includes.tweets.0.id=" + answer}},
		{"only the newest post's ID", "/x/2/users/me?user.fields=most_recent_post_id,location", is{200, "data.most_recent_post_id=" + answer}},
		{"an unknown expansion", timeline + "?expansions=colour", is{400}},
		{"an unknown media field", timeline + "?media.fields=colour", is{400}},
		{"an invalid time", timeline + "?end_time=now", is{400}},
		{"a parameter that a single post does not have", "/x/2/tweets/" + first + "?max_results=5", is{400}},
		{"an invalid ID", "/x/2/tweets/abc", is{400}},
	})
}

// TestXAcceptsDocumentedOptions sends documented options that have no effect here. Only a lenient sandbox accepts them, so that tests notice
// what is not simulated.
func TestXAcceptsDocumentedOptions(t *testing.T) {
	lenient, strict := startLenient(t), start(t, "")
	for _, tt := range []struct{ why, path, body string }{
		{"gotwi's poll", "/x/2/tweets", `{"text":"which?","poll":{"options":["a","b"],"duration_minutes":60}}`},
		{"options of X's own form", "/x/2/tweets", `{"text":"a","made_with_ai":true,"reply_settings":"following"}`},
		{
			"an upload that is not shared", xMedia + "/initialize",
			`{"media_type":"image/png","media_category":"tweet_image","total_bytes":9,"shared":false}`,
		},
	} {
		if r := lenient.as("x", http.MethodPost, tt.path, jsonType, tt.body); r.status >= 300 {
			t.Errorf("%s: %d %s", tt.why, r.status, r.body)
		}
		strict.as("x", http.MethodPost, tt.path, jsonType, tt.body).want(t, tt.why+" in a strict sandbox", 400)
	}
	lenient.tweet(`{"text":"a","colour":"red"}`).want(t, "an unknown field is rejected in any case", 400)
}

// TestXPrependsMentions checks that replies start with the mentioned names, as on X.
func TestXPrependsMentions(t *testing.T) {
	for _, tt := range []struct{ why, parent, text, want, bounds string }{ // bounds are those of the sent text
		{"an account does not mention itself", "hello", "text", "text", "[0,4]"},
		{"@bob is part of the conversation", "hello @bob", "text", "@bob text", "[5,9]"},
		{"names appear once, in their original order", "@ann and @bob and @Ann", "text", "@ann @bob text", "[10,14]"},
		{"X does not repeat a name in the reply", "hello @bob", "@Bob text", "@Bob text", "[0,9]"},
		{"the author's own name is not added", "I am @herald_demo", "text", "text", "[0,4]"},
		{"exclude_reply_user_ids removes a name", "hello @bob", "text", "text", "[0,4]"},
		{"a mail address is not a mention", "me@example.com", "text", "text", "[0,4]"},
	} {
		b := start(t, "")
		b.account("x", "42", `{"username":"bob"}`)
		answer := func(to, text string) reply {
			body := replyBody(text, to)
			if strings.Contains(tt.why, "exclude") {
				body = strings.Replace(body, `"reply":{`, `"reply":{"exclude_reply_user_ids":["42"],`, 1)
			}
			id := b.tweet(body).want(t, tt.why, 201).text("data", "id")
			return b.get("/x/2/tweets/" + id + "?tweet.fields=display_text_range")
		}
		first := answer(b.post(tt.parent), tt.text).want(t, tt.why, "data.text="+tt.want, "data.display_text_range="+tt.bounds)
		same(t, tt.why+": the control API has the sent text", tt.text, b.texts()[1])
		if tt.want == "@bob text" {
			answer(first.text("data", "id"), "and on").want(t, "the conversation continues", "data.text=@bob and on")
		}
	}
}
