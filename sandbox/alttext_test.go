// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// described adds an alt text to a container's parameters.
func described(values url.Values, altText string) url.Values {
	values.Set("alt_text", altText)
	return values
}

// TestAltTexts publishes files with alt texts, which the control API and the pages show.
func TestAltTexts(t *testing.T) {
	const alt = `a "cat" & 50 %`
	picture := jpegOf(t, 40, 40)
	film := mp4Of("isom", 64, 48, 5*time.Second)
	s := newShelf(t, map[string][]byte{"a.jpg": picture, "a.mp4": film})
	image, video := s.url+"/a.jpg", s.url+"/a.mp4"
	for _, tt := range []struct {
		why, platform, account string
		publish                func(b *box) reply
		want                   []any
	}{
		{"a photo has alt_text_custom", "facebook", pageID, func(b *box) reply {
			return b.sendPhoto(picture, "alt_text_custom", alt)
		}, []any{alt}},
		{"unpublished photos keep their alt texts", "facebook", pageID, func(b *box) reply {
			one := b.sendPhoto(picture, "published", "false", "alt_text_custom", alt).text("id")
			return b.form("facebook", pagePath+"/feed", fbAttached("two", b.fbPhoto(picture), one))
		}, []any{nil, alt}},
		{"an image on Threads", "threads", threadsID, func(b *box) reply {
			return b.publishContainer(b.ready(described(imageOf(image), alt)))
		}, []any{alt}},
		{"a video on Threads, which is fetched later", "threads", threadsID, func(b *box) reply {
			return b.publishContainer(b.ready(described(videoOf(video), alt)))
		}, []any{alt}},
		{"items of a carousel have alt texts", "threads", threadsID, func(b *box) reply {
			return b.publishContainer(b.ready(carouselOf(b.ready(itemOf(imageOf(image))), b.ready(itemOf(described(videoOf(video), alt))))))
		}, []any{nil, alt}},
		{"an image on Instagram", "instagram", instagramID, func(b *box) reply {
			return b.igPublish(b.igReady(described(url.Values{"image_url": {image}}, alt)))
		}, []any{alt}},
		{"an image of a carousel", "instagram", instagramID, func(b *box) reply {
			item := func() url.Values { return itemOf(url.Values{"image_url": {image}}) }
			return b.igPublish(b.igReady(carouselOf(b.igReady(item()), b.igReady(described(item(), alt)))))
		}, []any{nil, alt}},
		{"X stores the last alt text of an upload", "x", demoID, func(b *box) reply {
			id := b.xImage(picture)
			b.describe(id, "a dog").want(t, "the first", 200)
			b.describe(id, `a \"cat\" & 50 %`).want(t, "another", 200)
			return b.tweet(xBody("see", "", id, b.xImage(picture)))
		}, []any{alt, nil}},
	} {
		t.Run(tt.why, func(t *testing.T) {
			b := start(t, "")
			if got := tt.publish(b); got.status >= 300 {
				t.Fatalf("refused: %d %s", got.status, got.body)
			}
			var got []any
			files, _ := field(b.posted(tt.platform), 0, "media").([]any)
			for _, file := range files {
				got = append(got, field([]any{file}, 0, "alt_text"))
			}
			same(t, "the alt texts in the control API", tt.want, got)
			b.page("/accounts/"+tt.platform+"/"+tt.account).want(t, "the page", `~="a &#34;cat&#34; &amp; 50 %"`, `~<span class="badge">ALT</span> a &#34;cat&#34;`)
		})
	}
}

// describe sets the alt text of an upload on X, in JSON without its quotes.
func (b *box) describe(id, altText string) reply {
	b.t.Helper()
	return b.as("x", http.MethodPost, "/x/2/media/metadata", jsonType, `{"id":"`+id+`","metadata":{"alt_text":{"text":"`+altText+`"}}}`)
}

// TestAltTextLimits checks what the platforms refuse. X's limit is in TestXTakesMediaAsJSON.
func TestAltTextLimits(t *testing.T) {
	b := start(t, "")
	picture := jpegOf(t, 40, 40)
	s := newShelf(t, map[string][]byte{"a.jpg": picture, "a.mp4": mp4Of("isom", 64, 48, 5*time.Second)})
	image, video := "image_url="+s.url+"/a.jpg", "video_url="+s.url+"/a.mp4"
	longest := "&alt_text=" + strings.Repeat("%C3%A9", 1000)
	tooLong := graphError(100, "alt_text must be at most 1000 characters long")
	b.each(t, b.threadsForm, []row{
		{"1,000 characters on Threads, however many bytes", "media_type=IMAGE&" + image + longest, made},
		{"1,001 characters on Threads", "media_type=VIDEO&" + video + longest + "a", tooLong},
		{"a text has no alt text", "media_type=TEXT&text=a&alt_text=a", graphError(100, "alt_text is not allowed")},
		{"alt texts belong to a carousel's items", "media_type=CAROUSEL&children=1,2&alt_text=a", graphError(100, "alt_text is not allowed")},
	})
	b.each(t, b.igMedia, []row{
		{"1,000 characters on Instagram", image + longest, made},
		{"1,001 characters on Instagram", image + longest + "a", tooLong},
		{"reels have no alt text", "media_type=REELS&" + video + "&alt_text=a", graphError(100, "alt_text is not allowed")},
		{"carousels have no alt text", "media_type=CAROUSEL&children=1,2&alt_text=a", graphError(100, "alt_text is not allowed")},
	})
	b.sendPhoto(picture, "published", "false", "alt_text_custom", strings.Repeat("a", 1001)).
		want(t, "Facebook's limit, which is assumed", graphError(100, "alt_text_custom must be at most 1000 characters long")...)
}
