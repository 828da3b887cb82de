// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// TestArrange verifies each platform's arrangement of files.
func TestArrange(t *testing.T) {
	t.Parallel()
	image := bridge.MediaPreview{MimeType: v1alpha1.MimePNG, Width: 1600, Height: 500}
	film := func(width, height int32, duration time.Duration) bridge.MediaPreview {
		return bridge.MediaPreview{MimeType: v1alpha1.MimeMP4, Width: width, Height: height, Duration: duration}
	}
	images := func(n int) []bridge.MediaPreview {
		all := make([]bridge.MediaPreview, n)
		for i := range all {
			all[i] = image
		}
		return all
	}
	portrait := film(720, 1280, time.Minute)
	tests := []struct {
		name     string
		platform v1alpha1.Platform
		files    []bridge.MediaPreview
		want     arrangement
	}{
		{"X keeps an image's aspect ratio", v1alpha1.PlatformX, images(1), one},
		{"X arranges two to four images in a grid", v1alpha1.PlatformX, images(2), pattern},
		{"X keeps an upright video's aspect ratio", v1alpha1.PlatformX, []bridge.MediaPreview{portrait}, one},
		{"Threads scrolls several files", v1alpha1.PlatformThreads, images(2), strip},
		{"Threads keeps an image's aspect ratio", v1alpha1.PlatformThreads, images(1), one},
		{"Instagram keeps an image's aspect ratio", v1alpha1.PlatformInstagram, images(1), one},
		{"Instagram shows a carousel", v1alpha1.PlatformInstagram, images(2), slides},
		{"a video on Instagram is a reel", v1alpha1.PlatformInstagram, []bridge.MediaPreview{film(1280, 720, time.Minute)}, upright},
		{"Facebook arranges an album in a grid", v1alpha1.PlatformFacebook, images(6), pattern},
		{"Bluesky arranges two to four images in a grid", v1alpha1.PlatformBluesky, images(4), pattern},
		{"Bluesky keeps an upright video's aspect ratio", v1alpha1.PlatformBluesky, []bridge.MediaPreview{portrait}, one},
		{"Mastodon arranges two to four images in a grid", v1alpha1.PlatformMastodon, images(4), pattern},
		{"Mastodon keeps an image's aspect ratio", v1alpha1.PlatformMastodon, images(1), one},
		{"an image on TikTok fills the screen", v1alpha1.PlatformTikTok, images(1), upright},
		{"TikTok swipes through images", v1alpha1.PlatformTikTok, images(3), slides},
		{"a wide video on TikTok has black bars", v1alpha1.PlatformTikTok, []bridge.MediaPreview{film(1280, 720, time.Minute)}, upright},
		{"a wide video on YouTube", v1alpha1.PlatformYouTube, []bridge.MediaPreview{film(1280, 720, time.Minute)}, screen},
		{"an upright video of at most three minutes is a Short", v1alpha1.PlatformYouTube, []bridge.MediaPreview{film(720, 1280, longestShort)}, upright},
		{"a square video is a Short as well", v1alpha1.PlatformYouTube, []bridge.MediaPreview{film(720, 720, time.Second)}, upright},
		{"a longer video is not a Short", v1alpha1.PlatformYouTube, []bridge.MediaPreview{film(720, 1280, longestShort+1)}, screen},
		{"a video of unknown size", v1alpha1.PlatformYouTube, []bridge.MediaPreview{film(0, 0, 0)}, screen},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := arrange(tc.platform, tc.files); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// preview returns the preview of a post with images.
func (w *world) preview(tb testing.TB, account, caption string, images ...string) *html.Node {
	tb.Helper()
	form := url.Values{"category": {"text"}, "caption": {caption}, "target": {account}}
	if len(images) > 0 {
		form["category"], form["image"] = []string{"image"}, images
	}
	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", form))
	if answer.Code != http.StatusOK {
		tb.Fatal(answer.Code)
	}
	return parsed(tb, answer.Body.String())
}

// TestMockMedia verifies the text next to a preview's files.
func TestMockMedia(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, account string
		files         int
		want          []string
		cells         int
	}{
		{"Facebook's fifth tile counts the remaining files", "our-facebook", 7, []string{"+2"}, 5},
		{"five tiles need no count", "our-facebook", 5, nil, 5},
		{"a carousel numbers its files", "our-instagram", 3, []string{"1/3", "3/3"}, 3},
		{"files that X does not accept are counted", "our-x", 6, []string{"and 2 more files"}, 4},
		{"files that Bluesky does not accept are counted", "our-bluesky", 6, []string{"and 2 more files"}, 4},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			var names []string
			for i := range tc.files {
				name := fmt.Sprint("m-", i)
				w.upload(name, func(m *v1alpha1.Media) { m.Status.Width, m.Status.Height = 1600, 500 })
				names = append(names, name)
			}
			page := w.preview(t, tc.account, "a", names...)
			says(t, tc.name, textOf(page), tc.want, []string{"+0"})
			pictures := images(page)
			if len(pictures) != tc.cells {
				t.Errorf("%d pictures, want %d", len(pictures), tc.cells)
			}
			if width, _ := attribute(thumbsOf(page)[0], "width"); width != "1600" {
				t.Errorf("a picture has the width %q, so the page jumps when it is loaded", width)
			}
		})
	}
}

func thumbsOf(page *html.Node) (found []*html.Node) {
	for _, name := range []string{"img", "video"} {
		for _, n := range elements(page, name) {
			if class, _ := attribute(n, "class"); class == "thumb" {
				found = append(found, n)
			}
		}
	}
	return found
}

// TestPlayer verifies that previews and posts have a player that shows the chosen cover picture, and that the form's
// list of files has none.
func TestPlayer(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.upload("film", func(m *v1alpha1.Media) { m.Spec.MimeType = v1alpha1.MimeMP4 })
	w.put(textPost("p-1", "a", asDraft, func(post *v1alpha1.Post) {
		post.Spec.Category = v1alpha1.CategoryVideo
		post.Spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}, ThumbnailOffsetMillis: new(int32(2500))}
	}))
	form := url.Values{"category": {"video"}, "caption": {"a"}, "video": {"film"}, "thumbnail": {"2.5"}, "target": {"our-x"}}
	tests := map[string]struct {
		page   *html.Node
		player bool
	}{
		"the preview":   {parsed(t, w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", form)).Body.String()), true},
		"a post":        {w.get(t, editor, "/teams/"+acme+"/posts/p-1"), true},
		"files to edit": {w.get(t, editor, "/teams/"+acme+"/posts/p-1/edit"), false},
	}
	for name, tc := range tests {
		films := thumbsOf(tc.page)
		if len(films) != 1 {
			t.Fatalf("%s has %d videos", name, len(films))
		}
		source, _ := attribute(films[0], "src")
		if _, controls := attribute(films[0], "controls"); controls != tc.player || tc.player != strings.HasSuffix(source, "#t=2.5") {
			t.Errorf("%s: controls %v, from %s", name, controls, source)
		}
	}
}

// TestRecheck verifies that a preview is updated until its files are verified.
func TestRecheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		phase v1alpha1.MediaPhase
		want  bool
	}{
		{"a file that has just been uploaded", v1alpha1.MediaPending, true},
		{"a file that no controller has processed", "", true},
		{"a verified file", v1alpha1.MediaUploaded, false},
		{"a rejected file will not be verified", v1alpha1.MediaRejected, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.upload("m-1", func(m *v1alpha1.Media) { m.Status.Phase = tc.phase })
			again := false
			for _, n := range elements(w.preview(t, "our-x", "a", "m-1"), "div") {
				if at, _ := attribute(n, "hx-post"); at == "/teams/"+acme+"/compose/check" {
					again = true
				}
			}
			if again != tc.want {
				t.Errorf("the preview is renewed: %v", again)
			}
		})
	}
}
