// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInstagramPicture(t *testing.T) {
	b, picture := start(t, ""), jpegOf(t, 50, 40)
	s := newShelf(t, map[string][]byte{"a.jpg": picture})
	id := b.igContainer(url.Values{"image_url": {s.url + "/a.jpg"}, "caption": {"See #this https://a.b"}})
	r := b.read("instagram", "/instagram/v25.0/"+id+"?fields=status_code,status")
	if r.text("status_code") != "FINISHED" || r.text("status") == "" {
		t.Errorf("a picture is ready at once: %s", r.body)
	}
	b.clock.Step(time.Second)
	delete(s.files, "a.jpg") // a fetched file is not fetched again
	post := b.igPublish(id).text("id")
	got := b.read("instagram", "/instagram/v25.0/"+post+"?fields=id,caption,media_type,media_product_type,permalink,shortcode,timestamp,username,owner,media_url,children")
	code := got.text("shortcode")
	want := map[string]any{
		"id": post, "caption": "See #this https://a.b", "media_type": "IMAGE", "media_product_type": "FEED",
		"permalink": b.http.URL + "/instagram/p/" + code + "/", "shortcode": code, "timestamp": "2026-12-01T09:00:01+0000",
		"username": "herald_demo", "owner": map[string]any{"id": instagramID}, "media_url": b.http.URL + "/_media/" + sumOf(picture),
	}
	if diff := cmp.Diff(any(want), got.at()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(post) != 17 || strings.Contains(got.text("permalink"), post) {
		t.Errorf("id %s, permalink %s: the one is not part of the other", post, got.text("permalink"))
	}
	shown := b.control(http.MethodGet, "/posts?platform=instagram", "", http.StatusOK)
	if diff := cmp.Diff([]any{file(picture, "image/jpeg")}, shown.list("data", "0", "media")); diff != "" || shown.text("data", "0", "url") != got.text("permalink") {
		t.Errorf("the control API says %s (-want +got):\n%s", shown.body, diff)
	}
	for _, page := range []string{"/instagram/p/" + code + "/", "/accounts/instagram/" + instagramID} {
		if r := b.call(http.MethodGet, page, "", "", ""); r.status != http.StatusOK || !strings.Contains(r.body, "/_media/"+sumOf(picture)) || !strings.Contains(r.body, "#this") {
			t.Errorf("%s shows %d %s", page, r.status, r.body)
		}
	}
}

func TestInstagramReel(t *testing.T) {
	b, film := start(t, ""), mp4Of("isom", 720, 1280, 5*time.Second)
	s := newShelf(t, map[string][]byte{"a.mp4": film})
	post := b.igPost(query("media_type=REELS&caption=a&thumb_offset=1500&video_url=" + s.url + "/a.mp4"))
	got := b.read("instagram", "/instagram/v25.0/"+post+"?fields=media_type,media_product_type,permalink,shortcode,media_url")
	want := map[string]any{
		"id": post, "media_type": "VIDEO", "media_product_type": "REELS", "shortcode": got.text("shortcode"),
		"permalink": b.http.URL + "/instagram/reel/" + got.text("shortcode") + "/", "media_url": b.http.URL + "/_media/" + sumOf(film),
	}
	if diff := cmp.Diff(any(want), got.at()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	shown := b.control(http.MethodGet, "/posts", "", http.StatusOK).at("data", "0")
	post0, _ := shown.(map[string]any)
	if diff := cmp.Diff([]any{[]any{file(film, "video/mp4")}, got.text("permalink")}, []any{post0["media"], post0["url"]}); diff != "" {
		t.Errorf("the control API (-want +got):\n%s", diff)
	}
	options, _ := post0["detail"].(map[string]any)
	for name, want := range map[string]any{"thumb_offset": 1500.0, "media_type": "REELS"} {
		if options[name] != want {
			t.Errorf("%s is %v, want %v", name, options[name], want)
		}
	}
	for path, status := range map[string]int{"reel": 200, "p": 302} {
		if r := b.call(http.MethodGet, "/instagram/"+path+"/"+got.text("shortcode")+"/", "", "", ""); r.status != status {
			t.Errorf("the page below %s: %d, want %d", path, r.status, status)
		}
	}
}

func TestInstagramCarousel(t *testing.T) {
	b, first, film, last := start(t, ""), jpegOf(t, 40, 40), mp4Of("isom", 64, 48, 5*time.Second), jpegOf(t, 50, 40)
	s := newShelf(t, map[string][]byte{"1.jpg": first, "2.mp4": film, "3.jpg": last})
	one := b.igReady(query("is_carousel_item=true&image_url=" + s.url + "/1.jpg"))
	three := b.igReady(query("is_carousel_item=true&image_url=" + s.url + "/3.jpg"))
	two := b.igContainer(query("media_type=VIDEO&is_carousel_item=true&video_url=" + s.url + "/2.mp4"))
	parent := query("media_type=CAROUSEL&caption=all&children=" + one + "," + two + "," + three)
	refused := func(reason string, code, subcode float64, children ...string) {
		t.Helper()
		r := b.form("instagram", instagramPath+"/media", url.Values{"media_type": {"CAROUSEL"}, "children": {strings.Join(children, ",")}})
		if r.at("error", "code") != code || r.at("error", "error_subcode") != subcode {
			t.Errorf("%s: %d %s, want %v/%v", reason, r.status, r.body, code, subcode)
		}
	}
	refused("an item that is not ready", 9007, 2207027, one, two)
	if got := b.igSettled(two); got != "FINISHED" {
		t.Fatalf("the film is %s", got)
	}
	refused("a picture that is no item", 100, 2207028, one, b.igReady(query("image_url="+s.url+"/1.jpg")))
	broken := b.igContainer(query("media_type=VIDEO&is_carousel_item=true&video_url=" + s.url + "/1.jpg"))
	b.igSettled(broken)
	refused("an item that failed", 9007, 2207027, one, broken)
	if r := b.igPublish(one); r.at("error", "code") != 100.0 {
		t.Errorf("an item by itself: %d %s", r.status, r.body)
	}
	post := b.igPost(parent)
	got := b.read("instagram", "/instagram/v25.0/"+post+"?fields=media_type,media_product_type,caption,media_url,children{media_type,media_url}")
	children := got.list("children", "data")
	for _, child := range children {
		object, _ := child.(map[string]any)
		delete(object, "id")
	}
	at := b.http.URL + "/_media/"
	want := []any{
		map[string]any{"media_type": "IMAGE", "media_url": at + sumOf(first)},
		map[string]any{"media_type": "VIDEO", "media_url": at + sumOf(film)},
		map[string]any{"media_type": "IMAGE", "media_url": at + sumOf(last)},
	}
	if diff := cmp.Diff(want, children); diff != "" || got.text("media_type") != "CAROUSEL_ALBUM" || got.text("media_product_type") != "FEED" || got.text("caption") != "all" {
		t.Errorf("%s (-want +got):\n%s", got.body, diff)
	}
	media := b.control(http.MethodGet, "/posts", "", http.StatusOK).list("data", "0", "media")
	if diff := cmp.Diff([]any{file(first, "image/jpeg"), file(film, "video/mp4"), file(last, "image/jpeg")}, media); diff != "" {
		t.Errorf("the files in the order of the children (-want +got):\n%s", diff)
	}
	b.clock.Step(24 * time.Hour)
	refused("items of yesterday", -2, 2207020, one, three)
}

func TestInstagramContainerLife(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.mp4": mp4Of("isom", 64, 48, 5*time.Second), "a.jpg": jpegOf(t, 40, 40)})
	refused := func(reason, id string, code, subcode float64) {
		t.Helper()
		r := b.igPublish(id)
		if r.status != http.StatusBadRequest || r.at("error", "code") != code || r.at("error", "error_subcode") != subcode {
			t.Errorf("%s: %d %s, want %v/%v", reason, r.status, r.body, code, subcode)
		}
	}
	id := b.igContainer(query("media_type=REELS&caption=hello&video_url=" + s.url + "/a.mp4"))
	<-s.asked
	b.clock.Step(videoWork - time.Millisecond)
	if got := b.igStatus(id); got != "IN_PROGRESS" {
		t.Errorf("at first it is %s", got)
	}
	refused("publishing too early", id, 9007, 2207027)
	if got := b.igSettled(id); got != "FINISHED" || len(b.texts()) != 0 {
		t.Errorf("then it is %s, and %q is posted", got, b.texts())
	}
	if r := b.igPublish(id); r.status != http.StatusOK || b.igStatus(id) != "PUBLISHED" {
		t.Errorf("published: %d %s, and it is %s", r.status, r.body, b.igStatus(id))
	}
	refused("publishing once more", id, 24, 2207008)
	b.clock.Step(25 * time.Hour)
	if got := b.igStatus(id); got != "PUBLISHED" {
		t.Errorf("a day later it is %s", got)
	}
	refused("publishing once more a day later", id, 24, 2207008)
	refused("publishing what never was", "1", 24, 2207006)
	if diff := cmp.Diff([]string{"hello"}, b.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	id = b.igContainer(query("image_url=" + s.url + "/a.jpg"))
	b.clock.Step(24*time.Hour - time.Millisecond)
	if got := b.igStatus(id); got != "FINISHED" {
		t.Errorf("just before a day it is %s", got)
	}
	b.clock.Step(time.Millisecond)
	if got := b.igStatus(id); got != "EXPIRED" {
		t.Errorf("after a day it is %s", got)
	}
	refused("publishing what has expired", id, -2, 2207020)
}

func TestInstagramQuota(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40)})
	limit := func() reply {
		return b.read("instagram", instagramPath+"/content_publishing_limit?fields=quota_usage,config")
	}
	b.control(http.MethodPut, "/accounts/instagram/"+instagramID, `{"quota":2}`, http.StatusOK)
	item := "is_carousel_item=true&image_url=" + s.url + "/a.jpg"
	b.igPost(query("media_type=CAROUSEL&children=" + b.igReady(query(item)) + "," + b.igReady(query(item)))) // counts as one post
	b.clock.Step(time.Hour)
	b.igPost(query("image_url=" + s.url + "/a.jpg"))
	full := b.igReady(query("caption=three&image_url=" + s.url + "/a.jpg"))
	if r := b.igPublish(full); r.status != http.StatusBadRequest || r.at("error", "code") != 9.0 || r.at("error", "error_subcode") != 2207042.0 {
		t.Errorf("beyond the quota: %d %s", r.status, r.body)
	}
	if got := b.igStatus(full); got != "FINISHED" {
		t.Errorf("the container is %s, want it to wait", got)
	}
	config := map[string]any{"quota_total": 2.0, "quota_duration": 86400.0}
	if diff := cmp.Diff(any(map[string]any{"quota_usage": 2.0, "config": config}), limit().at("data", "0")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.clock.Step(23 * time.Hour)
	if r := b.igPublish(full); r.status != http.StatusOK {
		t.Errorf("a day after the first there is room: %d %s", r.status, r.body)
	}
	b.control(http.MethodPut, "/accounts/instagram/"+instagramID, `{"quota":null}`, http.StatusOK)
	if got := limit().at("data", "0", "config", "quota_total"); got != 50.0 {
		t.Errorf("the documented quota is told, not enforced: %v", got)
	}
}
