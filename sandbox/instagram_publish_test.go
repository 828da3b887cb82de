// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/url"
	"testing"
	"time"
)

func TestInstagramPicture(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 50, 40)
	s := newShelf(t, map[string][]byte{"a.jpg": picture})
	id := b.igContainer(url.Values{"image_url": {s.url + "/a.jpg"}, "caption": {"See #this https://a.b"}})
	b.igNode(id, "status_code,status").want(t, "an image is ready at once", "status_code=FINISHED", "status=*")
	b.clock.Step(time.Second)
	delete(s.files, "a.jpg") // a fetched file is not fetched again
	post, address := b.igPublish(id).text("id"), "/_media/"+sumOf(picture)
	got := b.igNode(post, "id,caption,media_type,media_product_type,permalink,shortcode,timestamp,username,owner,media_url,children")
	code := got.text("shortcode")
	same(t, "the post", map[string]any{
		"id": post, "caption": "See #this https://a.b", "media_type": "IMAGE", "media_product_type": "FEED",
		"permalink": b.http.URL + "/instagram/p/" + code + "/", "shortcode": code, "timestamp": "2026-12-01T09:00:01+0000",
		"username": "herald_demo", "owner": map[string]any{"id": instagramID}, "media_url": b.http.URL + address,
	}, got.at())
	got.want(t, "the permalink does not contain the ID", "permalink!"+post)
	same(t, "the length of an ID", 17, len(post))
	posts := b.posted("instagram")
	same(t, "the file in the control API", any(mediaOf("image/jpeg", picture)), field(posts, 0, "media"))
	same(t, "the address in the control API", any(got.text("permalink")), field(posts, 0, "url"))
	for _, page := range []string{"/instagram/p/" + code + "/", "/accounts/instagram/" + instagramID} {
		b.page(page).want(t, page, 200, "~"+address, "~#this")
	}
}

func TestInstagramReel(t *testing.T) {
	b, film := start(t, ""), mp4Of("isom", 720, 1280, 5*time.Second)
	s := newShelf(t, map[string][]byte{"a.mp4": film})
	post := b.igPost(query("media_type=REELS&caption=a&thumb_offset=1500&video_url=" + s.url + "/a.mp4"))
	got := b.igNode(post, "media_type,media_product_type,permalink,shortcode,media_url")
	code := got.text("shortcode")
	address := b.http.URL + "/instagram/reel/" + code + "/"
	same(t, "the post", map[string]any{
		"id": post, "media_type": "VIDEO", "media_product_type": "REELS", "shortcode": code, "permalink": address,
		"media_url": b.http.URL + "/_media/" + sumOf(film),
	}, got.at())
	posts := b.posted("instagram")
	same(t, "the post in the control API", []any{mediaOf("video/mp4", film), address, 1500.0, "REELS"}, []any{
		field(posts, 0, "media"), field(posts, 0, "url"), field(posts, 0, "detail", "thumb_offset"), field(posts, 0, "detail", "media_type"),
	})
	b.page("/instagram/reel/"+code+"/").want(t, "the permalink", 200)
	b.page("/instagram/p/"+code+"/").want(t, "the address of an image post", 302)
}

func TestInstagramCarousel(t *testing.T) {
	b, first, film, last := start(t, ""), jpegOf(t, 40, 40), mp4Of("isom", 64, 48, 5*time.Second), jpegOf(t, 50, 40)
	s := newShelf(t, map[string][]byte{"1.jpg": first, "2.mp4": film, "3.jpg": last})
	item := func(file string) url.Values { return query("is_carousel_item=true&" + file) }
	one, three := b.igReady(item("image_url="+s.url+"/1.jpg")), b.igReady(item("image_url="+s.url+"/3.jpg"))
	two := b.igContainer(item("media_type=VIDEO&video_url=" + s.url + "/2.mp4"))
	carousel := func(children ...string) reply { return b.igMedia(carouselOf(children...).Encode()) }
	carousel(one, two).want(t, "an item that is not ready", graphSubcode(9007, 2207027)...)
	same(t, "the video", "FINISHED", b.igSettled(two))
	single := b.igReady(query("image_url=" + s.url + "/1.jpg"))
	carousel(one, single).want(t, "an image that is not an item", graphSubcode(100, 2207028)...)
	broken := b.igContainer(item("media_type=VIDEO&video_url=" + s.url + "/1.jpg"))
	b.igSettled(broken)
	carousel(one, broken).want(t, "an item that failed", graphSubcode(9007, 2207027)...)
	b.igPublish(one).want(t, "publishing an item", graphError(100, "")...)
	values := carouselOf(one, two, three)
	values.Set("caption", "all")
	got := b.igNode(b.igPost(values), "media_type,media_product_type,caption,media_url,children{media_type,media_url}")
	got.want(t, "the post", "media_type=CAROUSEL_ALBUM", "media_product_type=FEED", "caption=all")
	same(t, "the children's types", []string{"IMAGE", "VIDEO", "IMAGE"}, got.each("children.data", "media_type"))
	at := b.http.URL + "/_media/"
	same(t, "the children's files", []string{at + sumOf(first), at + sumOf(film), at + sumOf(last)}, got.each("children.data", "media_url"))
	want := []any{file(first, "image/jpeg"), file(film, "video/mp4"), file(last, "image/jpeg")}
	same(t, "the files in the control API, in the order of the children", any(want), field(b.posted("instagram"), 0, "media"))
	b.clock.Step(24 * time.Hour)
	carousel(one, three).want(t, "items of yesterday", graphSubcode(-2, 2207020)...)
}

func TestInstagramContainerLife(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.mp4": mp4Of("isom", 64, 48, 5*time.Second), "a.jpg": jpegOf(t, 40, 40)})
	id := b.igContainer(query("media_type=REELS&caption=hello&video_url=" + s.url + "/a.mp4"))
	<-s.asked
	b.clock.Step(videoWork - time.Millisecond)
	same(t, "at first", "IN_PROGRESS", b.igStatus(id))
	b.igPublish(id).want(t, "publishing too early", graphSubcode(9007, 2207027)...)
	same(t, "after processing", "FINISHED", b.igSettled(id))
	same(t, "posts before publishing", 0, len(b.texts()))
	b.igPublish(id).want(t, "publishing", 200)
	for range 2 {
		same(t, "after publishing, and a day later", "PUBLISHED", b.igStatus(id))
		b.igPublish(id).want(t, "publishing again", graphSubcode(24, 2207008)...)
		b.clock.Step(25 * time.Hour)
	}
	b.igPublish("1").want(t, "publishing an unknown container", graphSubcode(24, 2207006)...)
	same(t, "posts", []string{"hello"}, b.texts())
	id = b.igContainer(query("image_url=" + s.url + "/a.jpg"))
	b.clock.Step(24*time.Hour - time.Millisecond)
	same(t, "within a day", "FINISHED", b.igStatus(id))
	b.clock.Step(time.Millisecond)
	same(t, "after a day", "EXPIRED", b.igStatus(id))
	b.igPublish(id).want(t, "publishing an expired container", graphSubcode(-2, 2207020)...)
}

func TestInstagramQuota(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40)})
	limit := func() reply {
		return b.read("instagram", instagramPath+"/content_publishing_limit?fields=quota_usage,config")
	}
	b.set("instagram", `{"quota":2}`)
	image := "image_url=" + s.url + "/a.jpg"
	item := func() string { return b.igReady(query("is_carousel_item=true&" + image)) }
	b.igPost(carouselOf(item(), item())) // counts as one post
	b.clock.Step(time.Hour)
	b.igPost(query(image))
	full := b.igReady(query("caption=three&" + image))
	b.igPublish(full).want(t, "publishing beyond the quota", graphSubcode(9, 2207042)...)
	same(t, "the container can be published later", "FINISHED", b.igStatus(full))
	limit().want(t, "the quota", `data=[{"config":{"quota_duration":86400,"quota_total":2},"quota_usage":2}]`)
	b.clock.Step(23 * time.Hour)
	b.igPublish(full).want(t, "a day after the first post there is room", 200)
	b.set("instagram", `{"quota":null}`)
	limit().want(t, "the documented quota is reported, but not enforced", "data.0.config.quota_total=50")
}

// TestInstagramAfterARestart restarts with one file in transit, one pending upload and one published post.
func TestInstagramAfterARestart(t *testing.T) {
	film := mp4Of("isom", 64, 48, 5*time.Second)
	b := start(t, t.TempDir())
	s := newShelf(t, map[string][]byte{"a.mp4": film, "a.jpg": jpegOf(t, 40, 40)})
	token := b.linked()
	out := b.igReady(query("caption=out&image_url=" + s.url + "/a.jpg"))
	post := b.igPublish(out).text("id")
	waiting, path := b.awaiting(token)
	s.hold = make(chan struct{})
	coming := b.igContainer(query("media_type=REELS&caption=coming&video_url=" + s.url + "/a.mp4"))
	c := b.restarted(func() { close(s.hold) })
	same(t, "the file in transit", "FINISHED", c.igSettled(coming))
	c.igPublish(out).want(t, "publishing again", "error.error_subcode=2207008")
	c.igUpload(path, uploadHeaders(token, len(film)), film).want(t, "the pending upload", 200)
	c.clock.Step(videoWork)
	same(t, "the upload", "FINISHED", c.linkedStatus(token, waiting))
	second := c.igPublish(coming).text("id")
	same(t, "the listing", []string{second, post}, c.read("instagram", instagramPath+"/media").ids())
	same(t, "the file in the control API", any(mediaOf("video/mp4", film)), field(c.posted("instagram"), 1, "media"))
}
