// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// xBody returns the body of a post with media; a reply if replyTo is set.
func xBody(text, replyTo string, ids ...string) string {
	body := `{"media":{"media_ids":["` + strings.Join(ids, `","`) + `"]}`
	if text != "" {
		body += fmt.Sprintf(`,"text":%q`, text)
	}
	if replyTo != "" {
		body += `,"reply":{"in_reply_to_tweet_id":"` + replyTo + `"}`
	}
	return body + "}"
}

func TestXPostsWithMedia(t *testing.T) {
	// Letters name a row's media: a to e are images, makers defines the others.
	const film, longFilm, gif, working, unfinished, unknown = "v", "l", "g", "w", "u", "?"
	tests := []struct {
		name, reason, text, media string
		status                    int
		wantIn                    string
	}{
		{"one image", "the plain case", "hello", "a", 201, `"text":"hello https://t.co/`},
		{"four images", "a carousel", "hello", "abcd", 201, `"id"`},
		{"no text", "media are enough", "", "a", 201, `"text":"https://t.co/`},
		{"a video", "one is the most", "hello", film, 201, `"id"`},
		{"a GIF", "one is the most", "hello", gif, 201, `"id"`},
		{"280 characters", "media cost nothing", strings.Repeat("a", 280), "a", 201, `"id"`},
		{"281 characters", "nor do they make room", strings.Repeat("a", 281), "a", 400, "too long"},
		{"an image and a video", "kinds do not mix", "hello", "a" + film, 403, "not permitted"},
		{"an image and a GIF", "kinds do not mix", "hello", gif + "a", 403, "not permitted"},
		{"an image twice", "each id once", "hello", "aa", 400, "twice"},
		{"1201 seconds", "20 minutes are the most of an ordinary account", "hello", longFilm, 403, "longer than allowed"},
		{"still worked on", "it must have succeeded", "hello", working, 400, "pending"},
		{"not finalized", "bytes are missing", "hello", unfinished, 400, "media IDs"},
		{"unknown", "no upload gave that id", "hello", unknown, 400, "media IDs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			makers := map[string]func() string{
				film: func() string {
					return b.xDone("video/mp4", "tweet_video", movie("isom", 640, 360, 1200*time.Second, 0))
				},
				longFilm: func() string {
					return b.xDone("video/mp4", "tweet_video", movie("isom", 640, 360, 1201*time.Second, 0))
				},
				gif: func() string { return b.xDone("image/gif", "tweet_gif", xPicture(t, "gif", 4, 4, 1)) },
				working: func() string {
					return b.xSent("video/mp4", "tweet_video", movie("isom", 640, 360, time.Second, 0))
				},
				unfinished: func() string { return b.xInitialize("video/mp4", "tweet_video", 9).text("data", "id") },
				unknown:    func() string { return "1234567" },
			}
			made := map[string]string{}
			var ids []string
			for i, letter := range strings.Split(tt.media, "") {
				switch {
				case made[letter] != "":
				case makers[letter] != nil:
					made[letter] = makers[letter]()
				default:
					made[letter] = b.xImage(xPicture(t, "png", 8, 8, uint8(i)))
				}
				ids = append(ids, made[letter])
			}
			r := b.tweet(xBody(tt.text, "", ids...))
			if r.status != tt.status || !strings.Contains(r.body, tt.wantIn) {
				t.Errorf("%s: %d %s, want %d with %q", tt.reason, r.status, r.body, tt.status, tt.wantIn)
			}
			if posted := len(b.texts()) == 1; posted != (tt.status == http.StatusCreated) {
				t.Errorf("%s: posted %v after status %d", tt.reason, posted, r.status)
			}
		})
	}
}

func TestXMediaOfOthers(t *testing.T) {
	b := start(t, "")
	other := b.control(http.MethodPut, "/accounts/x/2", "", http.StatusCreated).text("data", "access_token")
	own := b.xImage(xPicture(t, "png", 4, 4, 1))
	as := func(method, path, contentType, body string) reply {
		return b.call(method, path, other, contentType, body)
	}
	chunkType, chunk := xForm("segment_index", "0", "media", "a")
	for name, r := range map[string]reply{
		"post":     as(http.MethodPost, "/x/2/tweets", jsonType, xBody("mine", "", own)),
		"append":   as(http.MethodPost, xMedia+"/"+own+"/append", chunkType, chunk),
		"finalize": as(http.MethodPost, xMedia+"/"+own+"/finalize", "", ""),
		"status":   as(http.MethodGet, xMedia+"?command=STATUS&media_id="+own, "", ""),
	} {
		if !isXProblem(r, 403, "not-authorized-for-resource") {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}

func TestXMediaNeedsItsScope(t *testing.T) {
	b := start(t, "")
	limited := authorize(b, "tweet.read tweet.write users.read")
	for _, path := range []string{"", "/initialize", "/1/append", "/1/finalize"} {
		r := b.call(http.MethodPost, xMedia+path, limited, jsonType, `{}`)
		if !isXProblem(r, 403, "not-authorized-for-resource") || !strings.Contains(r.body, "media.write") {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
		if r := b.call(http.MethodPost, xMedia+path, "", jsonType, `{}`); !isXProblem(r, 401, "Unauthorized") {
			t.Errorf("%s without a token: %d %s", path, r.status, r.body)
		}
	}
	if r := b.call(http.MethodGet, xMedia+"?command=STATUS&media_id=1", limited, jsonType, ""); !isXProblem(r, 403, "media.write") {
		t.Errorf("status: %d %s", r.status, r.body)
	}
}

func TestXMediaExpires(t *testing.T) {
	b := start(t, "")
	picture := b.xImage(xPicture(t, "png", 4, 4, 1))
	begun := b.xInitialize("image/png", "tweet_image", 1).text("data", "id")
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"token_ttl_s":172800}`, http.StatusOK)
	token := b.refresh("x-refresh-demo").text("access_token")
	post := func(text string) reply {
		return b.call(http.MethodPost, "/x/2/tweets", token, jsonType, xBody(text, "", picture))
	}
	grow := func() reply {
		contentType, body := xForm("segment_index", "0", "media", "a")
		return b.call(http.MethodPost, xMedia+"/"+begun+"/append", token, contentType, body)
	}
	b.clock.Step(24*time.Hour - time.Millisecond)
	if r := post("in time"); r.status != http.StatusCreated {
		t.Errorf("within a day: %d %s", r.status, r.body)
	}
	if r := grow(); r.status != http.StatusOK {
		t.Errorf("within a day: %d %s", r.status, r.body)
	}
	b.clock.Step(time.Millisecond)
	if r := post("too late"); !isXProblem(r, 400, "media IDs") {
		t.Errorf("after a day: %d %s", r.status, r.body)
	}
	if r := grow(); !isXProblem(r, 400, "media IDs") {
		t.Errorf("an upload that took a day: %d %s", r.status, r.body)
	}
}

func TestXChainWithMedia(t *testing.T) {
	b := start(t, "")
	var contents [][]byte
	parent, chain := "", []string{}
	for i := range 3 {
		contents = append(contents, xPicture(t, "png", 8, 8, uint8(i)))
		r := b.tweet(xBody(fmt.Sprintf("card %d", i), parent, b.xImage(contents[i])))
		if r.status != http.StatusCreated {
			t.Fatalf("card %d: %d %s", i, r.status, r.body)
		}
		parent = r.text("data", "id")
		chain = append(chain, parent)
	}
	posts := b.control(http.MethodGet, "/posts", "", http.StatusOK)
	for i, id := range chain {
		at := fmt.Sprint(i)
		before := ""
		if i > 0 {
			before = chain[i-1]
		}
		got := []any{posts.at("data", at, "id"), posts.at("data", at, "in_reply_to"), posts.at("data", at, "media", "0", "sha256")}
		if diff := cmp.Diff([]any{id, before, sumOf(contents[i])}, got); diff != "" {
			t.Errorf("card %d (-want +got):\n%s", i, diff)
		}
	}
	if page := b.call(http.MethodGet, "/accounts/x/"+demoID, "", "", ""); strings.Count(page.body, `src="/_media/`) != 3 {
		t.Errorf("the feed does not show three pictures: %s", page.body)
	}
	if r := b.tweet(xBody("late", "7", b.xImage(contents[0]))); !isXProblem(r, 403, "deleted or not visible") {
		t.Errorf("a reply to a post that is unknown: %d %s", r.status, r.body)
	}
}

func TestXTimelineTellsTheMedia(t *testing.T) {
	b := start(t, "")
	one, two := xPicture(t, "png", 40, 30, 1), xPicture(t, "jpeg", 20, 10, 2)
	film := movie("isom", 640, 360, 2500*time.Millisecond, 0)
	a, c, v := b.xImage(one), b.xImage(two), b.xDone("video/mp4", "tweet_video", film)
	plain := b.post("no media")
	images := b.tweet(xBody("see k8s.io", "", a, c)).text("data", "id")
	video := b.tweet(xBody("", "", v)).text("data", "id")
	r := b.get("/x/2/users/" + demoID + "/tweets?tweet.fields=attachments,entities")
	want := []any{
		[]any{video, map[string]any{"media_keys": []any{"13_" + v}}},
		[]any{images, map[string]any{"media_keys": []any{"3_" + a, "3_" + c}}},
		[]any{plain, nil},
	}
	got := []any{}
	for i := range 3 {
		got = append(got, []any{r.at("data", fmt.Sprint(i), "id"), r.at("data", fmt.Sprint(i), "attachments")})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is attached (-want +got):\n%s", diff)
	}
	if shown := b.call(http.MethodGet, "/_media/"+sumOf(one), "", "", ""); shown.body != string(one) {
		t.Errorf("the address of a picture leads to its bytes: %d", shown.status)
	}
	checkMediaLinks(t, r.at("data", "1"), "/status/"+images, "see ", []string{"", "3_" + a, "3_" + c}, []string{"http://k8s.io", "/photo/1", "/photo/2"})
	checkMediaLinks(t, r.at("data", "0"), "/status/"+video, "", []string{"13_" + v}, []string{"/video/1"})
	if r := b.get("/x/2/users/" + demoID + "/tweets"); r.at("data", "1", "attachments") != nil {
		t.Errorf("the media were not asked for: %s", r.body)
	}
}

// checkMediaLinks checks a post's short links: their targets, and their position after the text.
func checkMediaLinks(t *testing.T, post any, page, words string, wantKeys, wantEnds []string) {
	t.Helper()
	object, _ := post.(map[string]any)
	text, _ := object["text"].(string)
	entities, _ := object["entities"].(map[string]any)
	urls, _ := entities["urls"].([]any)
	var keys, links []string
	for i, u := range urls {
		entity, _ := u.(map[string]any)
		key, _ := entity["media_key"].(string)
		address, _ := entity["url"].(string)
		leads, _ := entity["expanded_url"].(string)
		from, _ := entity["start"].(float64)
		to, _ := entity["end"].(float64)
		if cut := string([]rune(text)[int(from):int(to)]); cut != address || len(address) != 23 {
			t.Errorf("link %d is %q, and cut out %q", i, address, cut)
		}
		if i < len(wantEnds) && !strings.HasSuffix(leads, wantEnds[i]) || key != "" && !strings.Contains(leads, page) {
			t.Errorf("link %d leads to %s", i, leads)
		}
		keys = append(keys, key)
		links = append(links, address)
	}
	if diff := cmp.Diff(wantKeys, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if want := words + strings.Join(slices.Compact(links), " "); text != want {
		t.Errorf("text %q, want %q", text, want)
	}
}

// TestXMediaAndDuplicates posts the same text with and without media. X documents its duplicate check for texts only, so a publisher cannot
// rely on it for a post with media.
func TestXMediaAndDuplicates(t *testing.T) {
	b := start(t, "")
	id := b.xImage(xPicture(t, "png", 4, 4, 1))
	for range 2 {
		if r := b.tweet(xBody("same", "", id)); r.status != http.StatusCreated {
			t.Errorf("the same with media: %d %s", r.status, r.body)
		}
		if r := b.tweet(xBody("", "", id)); r.status != http.StatusCreated {
			t.Errorf("media alone: %d %s", r.status, r.body)
		}
	}
	b.post("same")
	b.tweet(xBody("same", "", id))
	if r := b.tweet(textBody("same")); !isXProblem(r, 403, "duplicate content") {
		t.Errorf("the text alone, twice: %d %s", r.status, r.body)
	}
}
