// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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
	video := func(b *box, seconds int) string {
		return b.xDone("video/mp4", "tweet_video", movie("isom", 640, 360, time.Duration(seconds)*time.Second, 0))
	}
	makers := map[string]func(b *box) string{
		"A":     func(b *box) string { return b.xImage(xPicture(t, "png", 8, 8, 1)) },
		"B":     func(b *box) string { return b.xImage(xPicture(t, "png", 8, 8, 2)) },
		"C":     func(b *box) string { return b.xImage(xPicture(t, "png", 8, 8, 3)) },
		"D":     func(b *box) string { return b.xImage(xPicture(t, "png", 8, 8, 4)) },
		"video": func(b *box) string { return video(b, 1200) },
		"long":  func(b *box) string { return video(b, 1201) },
		"gif":   func(b *box) string { return b.xDone("image/gif", "tweet_gif", xPicture(t, "gif", 4, 4, 1)) },
		"processing": func(b *box) string {
			return b.xSent("video/mp4", "tweet_video", movie("isom", 640, 360, time.Second, 0))
		},
		"unfinished": func(b *box) string { return b.xStarted("video/mp4", "tweet_video", 9) },
		"unknown":    func(*box) string { return "1234567" },
	}
	// send posts the media named by the words before the colon, with the text after it.
	send := func(b *box, post string) reply {
		media, text, _ := strings.Cut(post, ":")
		ids, known := []string{}, map[string]string{}
		for name := range strings.FieldsSeq(media) {
			if known[name] == "" {
				known[name] = makers[name](b)
			}
			ids = append(ids, known[name])
		}
		return b.tweet(xBody(text, "", ids...))
	}
	apart(t, send, []row{
		{"an image", "A:hello", is{201, "data.text~hello https://t.co/"}},
		{"four images", "A B C D:hello", is{201}},
		{"media without a text", "A:", is{201, "data.text~https://t.co/"}},
		{"a video of 20 minutes", "video:hello", is{201}},
		{"a GIF", "gif:hello", is{201}},
		{"media do not count as characters", "A:" + strings.Repeat("a", 280), is{201}},
		{"media do not increase the character limit", "A:" + strings.Repeat("a", 281), xProblem(400, "too long")},
		{"images and videos do not mix", "A video:hello", xProblem(403, "not permitted")},
		{"images and GIFs do not mix", "gif A:hello", xProblem(403, "not permitted")},
		{"each ID is used once", "A A:hello", xProblem(400, "twice")},
		{"20 minutes are the maximum of an ordinary account", "long:hello", xProblem(403, "longer than allowed")},
		{"processing must have ended", "processing:hello", xProblem(400, "pending")},
		{"the upload must be finalized", "unfinished:hello", xProblem(400, "media IDs")},
		{"the ID must be an upload's", "unknown:hello", xProblem(400, "media IDs")},
	})
}

func TestXMediaNeedsOwnerAndScope(t *testing.T) {
	b := start(t, "")
	other, limited := b.account("x", "2", ""), authorize(b, "tweet.read tweet.write users.read")
	own := b.xImage(xPicture(t, "png", 4, 4, 1))
	chunkType, chunk := xForm("segment_index", "0", "media", "a")
	for _, tt := range []struct{ why, method, path, contentType, body string }{
		{"posting", "POST", "/x/2/tweets", jsonType, xBody("mine", "", own)},
		{"appending to", "POST", xMedia + "/" + own + "/append", chunkType, chunk},
		{"finalizing", "POST", xMedia + "/" + own + "/finalize", "", ""},
		{"the status of", "GET", xMedia + "?command=STATUS&media_id=" + own, "", ""},
	} {
		r := b.call(tt.method, tt.path, other, tt.contentType, tt.body)
		r.want(t, tt.why+" another account's media", xProblem(403, "not-authorized-for-resource")...)
	}
	for _, path := range []string{"", "/initialize", "/1/append", "/1/finalize"} {
		r := b.call(http.MethodPost, xMedia+path, limited, jsonType, `{}`)
		r.want(t, path+" without the scope", 403, "type~not-authorized-for-resource", "~media.write")
		b.call(http.MethodPost, xMedia+path, "", jsonType, `{}`).want(t, path+" without a token", xProblem(401, "Unauthorized")...)
	}
	r := b.call(http.MethodGet, xMedia+"?command=STATUS&media_id=1", limited, jsonType, "")
	r.want(t, "the status without the scope", xProblem(403, "media.write")...)
}

func TestXMediaExpires(t *testing.T) {
	b := start(t, "")
	picture, started := b.xImage(xPicture(t, "png", 4, 4, 1)), b.xStarted("image/png", "tweet_image", 1)
	b.set("x", `{"token_ttl_s":172800}`)
	token := b.refresh("x-refresh-demo").text("access_token")
	post := func(text string) reply {
		return b.call(http.MethodPost, "/x/2/tweets", token, jsonType, xBody(text, "", picture))
	}
	grow := func() reply {
		contentType, body := xForm("segment_index", "0", "media", "a")
		return b.call(http.MethodPost, xMedia+"/"+started+"/append", token, contentType, body)
	}
	b.clock.Step(24*time.Hour - time.Millisecond)
	post("in time").want(t, "an image within a day", 201)
	grow().want(t, "an upload within a day", 200)
	b.clock.Step(time.Millisecond)
	post("too late").want(t, "an image after a day", xProblem(400, "media IDs")...)
	grow().want(t, "an upload after a day", xProblem(400, "media IDs")...)
}

func TestXChainWithMedia(t *testing.T) {
	b := start(t, "")
	chain, hashes, parents := []string{""}, []string{}, []string{}
	for i := range 3 {
		content := xPicture(t, "png", 8, 8, uint8(i))
		parents, hashes = append(parents, chain[i]), append(hashes, sumOf(content))
		r := b.tweet(xBody(fmt.Sprintf("card %d", i), chain[i], b.xImage(content)))
		chain = append(chain, r.want(t, "a card", 201).text("data", "id"))
	}
	posts := b.control(http.MethodGet, "/posts", "", http.StatusOK)
	same(t, "the cards", [][]string{chain[1:], parents, hashes},
		[][]string{posts.ids(), posts.each("data", "in_reply_to"), posts.each("data", "media", "0", "sha256")})
	same(t, "pictures in the feed", 3, strings.Count(b.page("/accounts/x/"+demoID).body, `src="/_media/`))
	late := xBody("late", "7", b.xImage(xPicture(t, "png", 4, 4, 1)))
	b.tweet(late).want(t, "a reply to an unknown post", xProblem(403, "deleted or not visible")...)
}

func TestXTimelineShowsTheMedia(t *testing.T) {
	b := start(t, "")
	one := xPicture(t, "png", 40, 30, 1)
	film := movie("isom", 640, 360, 2500*time.Millisecond, 0)
	a, c, v := b.xImage(one), b.xImage(xPicture(t, "jpeg", 20, 10, 2)), b.xDone("video/mp4", "tweet_video", film)
	b.post("no media")
	images := b.tweet(xBody("see k8s.io", "", a, c)).text("data", "id")
	video := b.tweet(xBody("", "", v)).text("data", "id")
	r := b.get(timeline+"?tweet.fields=attachments,entities").want(t, "what is attached", "data.2.attachments=",
		`data.0.attachments={"media_keys":["13_`+v+`"]}`, `data.1.attachments={"media_keys":["3_`+a+`","3_`+c+`"]}`)
	b.page("/_media/"+sumOf(one)).want(t, "a picture's address leads to its bytes", 200, "="+strings.TrimSpace(string(one)))
	for post, want := range map[string]struct {
		words      string
		keys, ends []string
	}{
		"0": {"", []string{"13_" + v}, []string{"/status/" + video + "/video/1"}},
		"1": {"see ", []string{"", "3_" + a, "3_" + c}, []string{"http://k8s.io", images + "/photo/1", images + "/photo/2"}},
	} {
		urls := "data." + post + ".entities.urls"
		checkLinkPositions(t, r, post)
		same(t, "the media keys of the links", want.keys, r.each(urls, "media_key"))
		for i, address := range r.each(urls, "expanded_url") {
			same(t, address+" ends with "+want.ends[i], true, strings.HasSuffix(address, want.ends[i]))
		}
		r.want(t, "the links follow the text", "data."+post+".text="+want.words+strings.Join(slices.Compact(r.each(urls, "url")), " "))
	}
	b.get(timeline).want(t, "media are shown on request only", "data.1.attachments=")
}

// TestXMediaAndDuplicates posts the same text with and without media. X documents its duplicate check only for text, so
// a publisher cannot rely on it for a post with media.
func TestXMediaAndDuplicates(t *testing.T) {
	b := start(t, "")
	id := b.xImage(xPicture(t, "png", 4, 4, 1))
	for range 2 {
		b.tweet(xBody("same", "", id)).want(t, "the same text with media", 201)
		b.tweet(xBody("", "", id)).want(t, "the same media without a text", 201)
	}
	b.post("same")
	b.tweet(xBody("same", "", id))
	b.tweet(textBody("same")).want(t, "the same text without media", xProblem(403, "duplicate content")...)
}

// TestXFaultsOnEveryUploadStep loses each step's response and repeats the step.
func TestXFaultsOnEveryUploadStep(t *testing.T) {
	b := start(t, "")
	content := xPicture(t, "png", 4, 4, 1)
	lost := func(operation string, again func() reply) reply {
		t.Helper()
		b.fault(`{"platform":"x","operation":"` + operation + `","kind":"error_after","status":500}`)
		again().want(t, operation+" with a fault", 500)
		return again().want(t, operation+" again", 200)
	}
	id := lost("upload", func() reply { return b.xInitialize("image/png", "tweet_image", len(content)) }).text("data", "id")
	lost("upload", func() reply { return b.xAppend(id, 0, content) })
	lost("upload", func() reply { return b.xFinalize(id) })
	moving := b.xSent("image/gif", "tweet_gif", xPicture(t, "gif", 4, 4, 1))
	lost("status", func() reply { return b.xStatus(moving) })
	lost("upload", func() reply { return b.xForm(xMedia, "media", string(content), "media_category", "tweet_image") })
	same(t, "status requests", 2, b.callsOn("x", "status"))
	b.fault(`{"platform":"x","operation":"publish","kind":"drop_after"}`)
	if _, err := b.try(http.MethodPost, "/x/2/tweets", demoAccess, jsonType, xBody("once", "", id)); err == nil {
		t.Error("the connection should have been closed")
	}
	b.get(timeline+"?tweet.fields=attachments").want(t, "the media identify the post", "data#1", `data.0.attachments.media_keys=["3_`+id+`"]`)
}

// TestXUploadContinuesAfterARestart restarts the sandbox between two chunks, with and without a partially written second chunk.
func TestXUploadContinuesAfterARestart(t *testing.T) {
	content, picture := movie("isom", 640, 360, time.Second, 1000), xPicture(t, "png", 4, 4, 1)
	for why, torn := range map[string]string{"between chunks": "", "within a chunk": "torn"} {
		b := start(t, t.TempDir())
		ready, id := b.xImage(picture), b.xStarted("video/mp4", "tweet_video", len(content))
		b.xAppend(id, 0, content[:600])
		c := b.restarted(func() {
			partial, err := filepath.Glob(filepath.Join(b.dir, "media", "partial", "*"))
			if err != nil || len(partial) != 1 {
				t.Fatalf("%s: uploads %v, error %v, want one", why, partial, err)
			}
			stored, err := os.ReadFile(partial[0])
			if err == nil {
				err = os.WriteFile(partial[0], append(stored, torn...), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		c.xAppend(id, 0, content[:600]).want(t, why+": the first chunk again", 200)
		c.xAppend(id, 1, content[600:])
		c.xFinalize(id)
		c.clock.Step(2 * time.Second)
		c.tweet(xBody("film", "", id))
		c.tweet(xBody("picture", "", ready))
		posts := c.control(http.MethodGet, "/posts", "", http.StatusOK)
		same(t, why, []string{sumOf(content), sumOf(picture)}, posts.each("data", "media", "0", "sha256"))
	}
}

// TestXConcurrentIdenticalChunks sends the same chunk concurrently from many clients. Its bytes must be stored only
// once.
func TestXConcurrentIdenticalChunks(t *testing.T) {
	b := start(t, "")
	content := movie("isom", 640, 360, time.Second, 100_000)
	id := b.xStarted("video/mp4", "tweet_video", len(content))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { b.xAppend(id, 0, content).want(t, "the chunk", 200) })
	}
	wg.Wait()
	b.xFinalize(id).want(t, "the size", 200, "data.size=100000")
}
