// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCreateTweet(t *testing.T) {
	long := strings.Repeat("a", 280)
	tests := []struct {
		name, reason, body string
		status             int
		wantIn             string // part of the response body
	}{
		{"text", "the plain case", `{"text":"hello"}`, 201, `"text":"hello"`},
		{"longest", "280 fit", `{"text":"` + long + `"}`, 201, `"id":`},
		{"too long", "281 do not", `{"text":"` + long + `a"}`, 400, "invalid-request"},
		{
			"short by links", "an address counts 23 whatever its length",
			`{"text":"https://example.com/` + long + `"}`, 201, "https://t.co/",
		},
		{
			"unknown field", "the schema allows no others", `{"text":"hello","txt":"x"}`, 400,
			`unknown field \"txt\"`,
		},
		{"unknown nested field", "also not inside", `{"text":"hello","reply":{"in_reply_to_tweet_id":"1","x":1}}`, 400, "unknown field"},
		{"number as text", "nor is a number", `{"text":1}`, 400, "number"},
		{"empty reply", "empty objects are refused", `{"text":"hello","reply":{}}`, 400, "in_reply_to_tweet_id"},
		{"reply to no id", "ids are digits", `{"text":"hello","reply":{"in_reply_to_tweet_id":"abc"}}`, 400, "regex pattern"},
		{"reply to nothing", "the post must exist", `{"text":"hello","reply":{"in_reply_to_tweet_id":"1"}}`, 403, "deleted or not visible"},
		{"no text", "without media a post needs text", `{}`, 400, "$.text"},
		{"blank text", "white space is no text", `{"text":" \n"}`, 400, "$.text"},
		{"byte order mark", "such characters make a text invalid", `{"text":"a\ufeffb"}`, 400, "not allowed"},
		{"unknown media", "no upload gave that id", `{"text":"a","media":{"media_ids":["1"]}}`, 400, "media IDs"},
		{"five media", "four are the most", `{"media":{"media_ids":["1","2","3","4","5"]}}`, 400, "maximum of 4"},
		{"not an object", "a body is an object", `["text"]`, 400, "array"},
		{"not JSON", "nor may it be anything else", `text=hello`, 400, "not valid JSON"},
		{"two values", "one value only", `{"text":"a"}{"text":"b"}`, 400, "not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			r := b.tweet(tt.body)
			if r.status != tt.status || !strings.Contains(r.body, tt.wantIn) {
				t.Errorf("%s: %d %s, want %d with %q", tt.reason, r.status, r.body, tt.status, tt.wantIn)
			}
			if posted := len(b.texts()) == 1; posted != (tt.status == http.StatusCreated) {
				t.Errorf("%s: posted %v after status %d", tt.reason, posted, r.status)
			}
			for _, header := range []string{"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"} {
				if _, err := strconv.Atoi(r.header.Get(header)); err != nil {
					t.Errorf("header %s is %q, want a number on every answer", header, r.header.Get(header))
				}
			}
		})
	}
}

func TestCreateNeedsJSON(t *testing.T) {
	b := start(t, "")
	r := b.call(http.MethodPost, "/x/2/tweets", demoAccess, "application/x-www-form-urlencoded", `{"text":"a"}`)
	if r.status != http.StatusBadRequest || len(b.texts()) != 0 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestTextComesBackAsXWritesIt(t *testing.T) {
	b := start(t, "")
	id := b.post(" Cafe\u0301 <b> & https://example.com/a?x=1&y=2, see k8s.io. ")
	r := b.get("/x/2/users/" + demoID + "/tweets?tweet.fields=entities")
	post, _ := r.list("data")[0].(map[string]any)
	entities, _ := post["entities"].(map[string]any)
	urls, _ := entities["urls"].([]any)
	if len(urls) != 2 {
		t.Fatalf("want two addresses: %s", r.body)
	}
	var short []string
	text, _ := post["text"].(string)
	want := []map[string]any{
		{"expanded_url": "https://example.com/a?x=1&y=2", "display_url": "example.com/a?x=1&y=2"},
		{"expanded_url": "http://k8s.io", "display_url": "k8s.io"},
	}
	for i, u := range urls {
		entity, _ := u.(map[string]any)
		address, _ := entity["url"].(string)
		from, _ := entity["start"].(float64)
		to, _ := entity["end"].(float64)
		if cut := string([]rune(text)[int(from):int(to)]); cut != address || len(address) != 23 {
			t.Errorf("start and end cut %q out, want the short link %q of 23 letters", cut, address)
		}
		short = append(short, address)
		got := map[string]any{"expanded_url": entity["expanded_url"], "display_url": entity["display_url"]}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("address %d (-want +got):\n%s", i, diff)
		}
	}
	if want := "Café &lt;b&gt; &amp; " + short[0] + ", see " + short[1] + "."; text != want {
		t.Errorf("text is %q, want %q", text, want)
	}
	if post["id"] != id {
		t.Errorf("id is %v, want %s", post["id"], id)
	}
}

func TestCashtags(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		lenient      bool
		status       int
	}{
		{"an app on a self-serve plan may post one", "$ACME is up", false, http.StatusCreated},
		{"and no more", "$ACME and $ABC", false, http.StatusForbidden},
		{"a price is none", "$5, then $10", false, http.StatusCreated},
		{"an app on an Enterprise plan may post several", "$ACME and $ABC", true, http.StatusCreated},
	} {
		b := start(t, "")
		if tc.lenient {
			b = startLenient(t)
		}
		if r := b.tweet(textBody(tc.text)); r.status != tc.status || r.status == http.StatusForbidden && !strings.Contains(r.text("detail"), "cashtag") {
			t.Errorf("%s: %d %s", tc.reason, r.status, r.body)
		}
	}
}

func TestDuplicates(t *testing.T) {
	b := start(t, "")
	other := b.control(http.MethodPut, "/accounts/x/2", "", http.StatusCreated).text("data", "access_token")
	first := b.post("Café")
	refused := func(reason, body string) {
		t.Helper()
		r := b.tweet(body)
		if r.status != http.StatusForbidden || !strings.Contains(r.text("detail"), "duplicate content") || r.text("type") != "about:blank" {
			t.Errorf("%s: %d %s", reason, r.status, r.body)
		}
	}
	refused("the same text", textBody("Café"))
	refused("the same text in another form", textBody(" Cafe\u0301\n"))
	refused("the same text as a reply", `{"text":"Café","reply":{"in_reply_to_tweet_id":"`+first+`"}}`)
	b.post("Café!")
	if r := b.call(http.MethodPost, "/x/2/tweets", other, "application/json", textBody("Café")); r.status != http.StatusCreated {
		t.Errorf("another account may post the same: %d %s", r.status, r.body)
	}
	b.clock.Step(15 * time.Minute)
	b.post("Café")
	refused("the window begins anew with the newest", textBody("Café"))
}

func TestIDsTellTheTimeAndIncrease(t *testing.T) {
	b := start(t, "")
	var ids []int64
	for i, step := range []time.Duration{0, 0, time.Millisecond, -time.Hour, 0, 2 * time.Hour} {
		b.clock.SetTime(b.clock.Now().Add(step))
		id, err := strconv.ParseInt(b.post(strconv.Itoa(i)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("ids %v do not always increase, also when the clock goes back", ids)
	}
	if at := ids[5]>>22 + 1288834974657; at != b.clock.Now().UnixMilli() {
		t.Errorf("the last id says %d, want the time of its creation, %d", at, b.clock.Now().UnixMilli())
	}
}

func TestReplies(t *testing.T) {
	b := start(t, "")
	other := b.control(http.MethodPut, "/accounts/x/2", `{"username":"other"}`, http.StatusCreated).text("data", "access_token")
	reply := func(token, to, text string) reply {
		return b.call(http.MethodPost, "/x/2/tweets", token, "application/json",
			`{"text":"`+text+`","reply":{"in_reply_to_tweet_id":"`+to+`"}}`)
	}
	alone, invites := b.post("no names"), b.post("hello @Other!")
	if r := reply(other, alone, "me?"); r.status != http.StatusForbidden {
		t.Errorf("an account that is not mentioned may not reply: %d %s", r.status, r.body)
	}
	answer := reply(other, invites, "thanks")
	if answer.status != http.StatusCreated {
		t.Fatalf("who is mentioned may reply: %d %s", answer.status, answer.body)
	}
	own := reply(demoAccess, alone, "and another thing").text("data", "id")
	deep := reply(demoAccess, own, "and one more").text("data", "id")
	r := b.get("/x/2/users/" + demoID + "/tweets?tweet.fields=conversation_id,referenced_tweets,in_reply_to_user_id&since_id=" + own)
	want := []any{map[string]any{
		"id": deep, "text": "and one more", "edit_history_post_ids": []any{deep}, "conversation_id": alone,
		"in_reply_to_user_id": demoID, "referenced_tweets": []any{map[string]any{"type": "replied_to", "id": own}},
	}}
	if diff := cmp.Diff(want, r.list("data")); diff != "" {
		t.Errorf("a chain tells what it hangs from (-want +got):\n%s", diff)
	}
}

func TestQuota(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"quota":2}`, http.StatusOK)
	b.post("one")
	b.clock.Step(time.Hour)
	b.post("two")
	first := b.clock.Now().Add(-time.Hour)
	r := b.tweet(textBody("three"))
	wantReset := strconv.FormatInt(first.Add(24*time.Hour).Unix()+1, 10)
	got := []string{r.header.Get("X-Rate-Limit-Remaining"), r.header.Get("X-Rate-Limit-Reset"), r.header.Get("X-User-Limit-24hour-Remaining")}
	if diff := cmp.Diff([]string{"0", wantReset, "0"}, got); r.status != http.StatusTooManyRequests || diff != "" {
		t.Errorf("%d, want 429 until the first post is a day old (-want +got):\n%s", r.status, diff)
	}
	b.clock.SetTime(first.Add(24 * time.Hour))
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"quota":2}`, http.StatusOK)
	r = b.call(http.MethodPost, "/x/2/tweets", b.refresh("x-refresh-demo").text("access_token"), "application/json", textBody("three"))
	if r.status != http.StatusCreated {
		t.Errorf("at the reset there is room again: %d %s", r.status, r.body)
	}
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"quota":0}`, http.StatusOK)
	if r := b.call(http.MethodPost, "/x/2/tweets", b.control(http.MethodGet, "/accounts/x/"+demoID, "", 200).text("data", "access_token"),
		"application/json", textBody("four")); r.status != http.StatusTooManyRequests {
		t.Errorf("a quota of 0 allows nothing: %d %s", r.status, r.body)
	}
}
