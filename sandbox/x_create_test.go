// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// replyBody returns the body of a reply.
func replyBody(text, to string) string {
	return fmt.Sprintf(`{"text":%q,"reply":{"in_reply_to_tweet_id":%q}}`, text, to)
}

func TestCreateTweet(t *testing.T) {
	long := strings.Repeat("a", 280)
	apart(t, (*box).tweet, []row{
		{"a plain text", `{"text":"hello"}`, is{201, `data.text=hello`, "X-Rate-Limit-Limit: *", "X-Rate-Limit-Reset: *"}},
		{"280 characters fit", `{"text":"` + long + `"}`, is{201, "data.id=*"}},
		{"281 characters are too many", `{"text":"` + long + `a"}`, is{400, "~invalid-request", "X-Rate-Limit-Remaining: *"}},
		{"a link counts as 23 characters, however long", `{"text":"https://example.com/` + long + `"}`, is{201, "~https://t.co/"}},
		{"the schema allows no unknown fields", `{"text":"hello","txt":"x"}`, is{400, `~unknown field \"txt\"`}},
		{"unknown nested fields are rejected", `{"text":"a","reply":{"in_reply_to_tweet_id":"1","x":1}}`, is{400, "~unknown field"}},
		{"a number is not a text", `{"text":1}`, is{400, "~number"}},
		{"an empty reply object is invalid", `{"text":"hello","reply":{}}`, is{400, "~in_reply_to_tweet_id"}},
		{"IDs are digits", replyBody("hello", "abc"), is{400, "~regex pattern"}},
		{"the parent must exist", replyBody("hello", "1"), is{403, "~deleted or not visible"}},
		{"without media a post needs a text", `{}`, is{400, "~$.text"}},
		{"white space is not a text", `{"text":" \n"}`, is{400, "~$.text"}},
		{"a byte order mark makes a text invalid", `{"text":"a\ufeffb"}`, is{400, "~not allowed"}},
		{"media IDs come from uploads", `{"text":"a","media":{"media_ids":["1"]}}`, is{400, "~media IDs"}},
		{"five media are too many", `{"media":{"media_ids":["1","2","3","4","5"]}}`, is{400, "~maximum of 4"}},
		{"a body is an object", `["text"]`, is{400, "~array"}},
		{"a body is JSON", `text=hello`, is{400, "~not valid JSON"}},
		{"a body is one value", `{"text":"a"}{"text":"b"}`, is{400, "~not valid JSON"}},
		{"one cashtag is allowed on a self-serve plan", `{"text":"$ACME is up"}`, is{201}},
		{"two cashtags are not", `{"text":"$ACME and $ABC"}`, is{403, "detail~cashtag"}},
		{"a price is not a cashtag", `{"text":"$5, then $10"}`, is{201}},
	})
	b := startLenient(t)
	b.tweet(textBody("$ACME and $ABC")).want(t, "an Enterprise plan allows several cashtags", 201)
	b.call(http.MethodPost, "/x/2/tweets", demoAccess, formType, `{"text":"a"}`).want(t, "the content type must be JSON", 400)
}

func TestTextIsReturnedWithShortLinks(t *testing.T) {
	b := start(t, "")
	id := b.post(" Cafe\u0301 <b> & https://example.com/a?x=1&y=2, see k8s.io. ")
	r := b.get(timeline + "?tweet.fields=entities")
	links := r.each("data.0.entities.urls", "url")
	same(t, "expanded addresses", []string{"https://example.com/a?x=1&y=2", "http://k8s.io"}, r.each("data.0.entities.urls", "expanded_url"))
	same(t, "displayed addresses", []string{"example.com/a?x=1&y=2", "k8s.io"}, r.each("data.0.entities.urls", "display_url"))
	checkLinkPositions(t, r, "0")
	r.want(t, "the text is composed, escaped and trimmed", "data.0.text=Café &lt;b&gt; &amp; "+links[0]+", see "+links[1]+".", "data.0.id="+id)
}

// checkLinkPositions checks that the reported positions of a post's links are those of its short links.
func checkLinkPositions(t *testing.T, r reply, post string) {
	t.Helper()
	text := []rune(r.text("data", post, "text"))
	for i, link := range r.each("data."+post+".entities.urls", "url") {
		at := func(name string) int {
			position, _ := r.at("data", post, "entities", "urls", strconv.Itoa(i), name).(float64)
			return int(position)
		}
		if cut := string(text[at("start"):at("end")]); cut != link || len(link) != 23 {
			t.Errorf("start and end of link %d cut out %q, want the short link %q of 23 characters", i, cut, link)
		}
	}
}

func TestDuplicates(t *testing.T) {
	b := start(t, "")
	other, first := b.account("x", "2", ""), b.post("Café")
	duplicate := is{403, "detail~duplicate content", "type=about:blank"}
	b.each(t, b.tweet, []row{
		{"the same text", textBody("Café"), duplicate},
		{"the same text in another normal form, with white space", textBody(" Cafe\u0301\n"), duplicate},
		{"the same text as a reply", replyBody("Café", first), duplicate},
		{"another text", textBody("Café!"), is{201}},
	})
	b.call(http.MethodPost, "/x/2/tweets", other, jsonType, textBody("Café")).want(t, "another account may post the same text", 201)
	b.clock.Step(15 * time.Minute)
	b.post("Café")
	b.tweet(textBody("Café")).want(t, "the window restarts with the newest post", duplicate...)
}

func TestIDsEncodeTheTimeAndIncrease(t *testing.T) {
	b := start(t, "")
	var ids []int64
	for i, step := range []time.Duration{0, 0, time.Millisecond, -time.Hour, 0, 2 * time.Hour} {
		b.clock.SetTime(b.clock.Now().Add(step))
		id, _ := strconv.ParseInt(b.post(strconv.Itoa(i)), 10, 64) // 0 is not above the previous ID
		ids = append(ids, id)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("IDs %v must increase even if the clock goes back", ids)
	}
	same(t, "the last ID encodes its creation time", b.clock.Now().UnixMilli(), ids[5]>>22+1288834974657)
}

func TestReplies(t *testing.T) {
	b := start(t, "")
	other := b.account("x", "2", `{"username":"other"}`)
	answer := func(token, to, text string) reply {
		return b.call(http.MethodPost, "/x/2/tweets", token, jsonType, replyBody(text, to))
	}
	alone, invites := b.post("no names"), b.post("hello @Other!")
	answer(other, alone, "me?").want(t, "an account that is not mentioned may not reply", 403)
	answer(other, invites, "thanks").want(t, "a mentioned account may reply", 201)
	own := answer(demoAccess, alone, "and another thing").text("data", "id")
	deep := answer(demoAccess, own, "and one more").text("data", "id")
	r := b.get(timeline + "?tweet.fields=conversation_id,referenced_tweets,in_reply_to_user_id&since_id=" + own)
	same(t, "a reply names its parent and its conversation", []any{map[string]any{
		"id": deep, "text": "and one more", "edit_history_post_ids": []any{deep}, "conversation_id": alone,
		"in_reply_to_user_id": demoID, "referenced_tweets": []any{map[string]any{"type": "replied_to", "id": own}},
	}}, r.list("data"))
}

func TestQuota(t *testing.T) {
	b := start(t, "")
	b.set("x", `{"quota":2,"token_ttl_s":172800}`)
	token := b.refresh("x-refresh-demo").text("access_token")
	post := func(text string) reply {
		return b.call(http.MethodPost, "/x/2/tweets", token, jsonType, textBody(text))
	}
	first := b.clock.Now()
	post("one")
	b.clock.Step(time.Hour)
	post("two")
	post("three").want(t, "the quota is used up until the first post is a day old", 429, "X-Rate-Limit-Remaining: 0",
		fmt.Sprint("X-Rate-Limit-Reset: ", first.Add(24*time.Hour).Unix()+1), "X-User-Limit-24hour-Remaining: 0")
	b.clock.SetTime(first.Add(24 * time.Hour))
	post("three").want(t, "at the reset there is room again", 201)
	b.set("x", `{"quota":0}`)
	post("four").want(t, "a quota of 0 allows nothing", 429)
}

func TestTimeline(t *testing.T) {
	b := start(t, "")
	var newest []string
	for i := range 12 {
		newest = append([]string{b.post(fmt.Sprintf("post %d", i))}, newest...)
		b.clock.Step(time.Second)
	}
	for _, tt := range []struct {
		why, query string
		want       []string
	}{
		{"ten posts by default", "", newest[:10]},
		{"max_results limits the posts", "?max_results=5", newest[:5]},
		{"a hundred at most", "?max_results=100", newest},
		{"posts after an ID, without it", "?since_id=" + newest[3], newest[:3]},
		{"since an ID that is not the account's", "?since_id=1", newest[:10]},
		{"no posts after the newest", "?since_id=" + newest[0], []string{}},
	} {
		same(t, tt.why, tt.want, b.timeline(tt.query))
	}
	var pages []string
	for query, page := "", 0; page < 3; page++ {
		r := b.get(timeline + "?max_results=5" + query)
		next := r.text("meta", "next_token")
		same(t, fmt.Sprint("page ", page, " of three is the last"), page == 2, next == "")
		pages, query = append(pages, r.ids()...), "&pagination_token="+next
	}
	same(t, "the pages together are the timeline", newest, pages)
	for query, in := range map[string]string{
		"max_results=4": "max_results", "max_results=101": "max_results", "max_results=many": "max_results", "since_id=abc": "since_id",
		"since_id=-1": "since_id", "exclude=quotes": "exclude", "tweet.fields=colour": "tweet.fields",
		"pagination_token=made-up": "pagination_token", "count=5": "[count] is not one of",
	} {
		b.get(timeline+"?"+query).want(t, "an invalid "+query, 400, "type~invalid-request", "~"+in)
	}
	other := b.account("x", "2", "")
	read := func(id string) reply { return b.call(http.MethodGet, "/x/2/users/"+id+"/tweets", other, "", "") }
	read(demoID).want(t, "another account reads a public timeline", "data#10")
	b.set("x", `{"private":true}`)
	read(demoID).want(t, "but not a private one", "data=", "~not-authorized-for-resource")
	read("999").want(t, "nor that of an unknown account", "data=", "~resource-not-found")
	same(t, "the owner reads a private timeline", 10, len(b.timeline("")))
}

func TestListingLag(t *testing.T) {
	b := start(t, "")
	b.set("x", `{"listing_lag_ms":30000}`)
	id := b.post("slow to appear")
	b.clock.Step(30*time.Second - time.Millisecond)
	same(t, "listed before the lag has passed", []string{}, b.timeline(""))
	b.clock.Step(time.Millisecond)
	same(t, "listed after the lag", []string{id}, b.timeline(""))
}

func TestUsersMe(t *testing.T) {
	b := start(t, "")
	me := map[string]any{"id": demoID, "name": "Herald Demo", "username": "herald_demo"}
	same(t, "by default", me, b.get("/x/2/users/me").at("data"))
	picture := "/_assets/avatar/x/" + demoID + ".svg"
	me["verified"], me["verified_type"], me["profile_image_url"] = false, "none", b.http.URL+picture
	r := b.get("/x/2/users/me?user.fields=id,name,username,profile_image_url,verified,verified_type")
	same(t, "with fields", me, r.at("data"))
	b.page(picture).want(t, "the picture shows the initials", 200, "Content-Type: image/svg+xml", "~>HD<")
	b.get("/x/2/users/me?user.fields=shoe_size").want(t, "an unknown field", 400)
}

func TestUnauthorized(t *testing.T) {
	b := start(t, "")
	limited := authorize(b, "tweet.read users.read")
	for _, tt := range []struct {
		why, method, path, token, body string
		want                           is
	}{
		{"no token", "GET", "/x/2/users/me", "", "", xProblem(401, "")},
		{"an unknown token", "GET", "/x/2/users/me", "nonsense", "", xProblem(401, "")},
		{"a refresh token instead of an access token", "GET", "/x/2/users/me", "x-refresh-demo", "", xProblem(401, "")},
		{"a post without a token", "POST", "/x/2/tweets", "", `{"text":"a"}`, xProblem(401, "")},
		{"a post without the scope to write", "POST", "/x/2/tweets", limited, `{"text":"a"}`, xProblem(403, "")},
		{"the scopes suffice to read", "GET", "/x/2/users/me", limited, "", is{200}},
		{"an unknown path", "GET", "/x/2/nothing", demoAccess, "", xProblem(404, "")},
	} {
		b.call(tt.method, tt.path, tt.token, jsonType, tt.body).want(t, tt.why, tt.want...)
	}
	b.clock.Step(2 * time.Hour)
	b.get("/x/2/users/me").want(t, "a token that expired after two hours", 401, "title=Unauthorized", "type=about:blank")
}
