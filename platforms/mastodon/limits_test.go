// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// TestParseLimits tests which of a server's limits on files take effect. TestLimits covers the limits that every server
// reports.
func TestParseLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, media string
		want          v1alpha1.MastodonServer
	}{
		"Mastodon": {
			"the defaults are what Herald allows", `"description_limit":1500,"supported_mime_types":["image/jpeg","image/png","image/gif","image/webp","video/mp4","video/quicktime"],
			"image_matrix_limit":33177600,"video_matrix_limit":8294400,"video_frame_rate_limit":120`, v1alpha1.MastodonServer{},
		},
		"lower": {
			"other servers have lower ones", `"description_limit":500,"image_matrix_limit":16777216,"video_matrix_limit":2304000,"video_frame_rate_limit":60`,
			v1alpha1.MastodonServer{MaxAltText: 500, MaxImagePixels: 16777216, MaxVideoPixels: 2304000, MaxVideoFrameRate: 60},
		},
		"higher":       {"what Herald allows remains", `"description_limit":5000,"image_matrix_limit":99999999,"video_matrix_limit":16777216,"video_frame_rate_limit":240`, v1alpha1.MastodonServer{}},
		"as texts":     {"a number may be a text", `"image_matrix_limit":"16777216"`, v1alpha1.MastodonServer{MaxImagePixels: 16777216}},
		"no numbers":   {"they say nothing", `"description_limit":null,"image_matrix_limit":-1,"video_matrix_limit":{},"video_frame_rate_limit":0.5`, v1alpha1.MastodonServer{}},
		"fewer types":  {"the rest is converted, or refused at creation", `"supported_mime_types":["video/mp4","image/png","image/jpeg","audio/mp3"]`, v1alpha1.MastodonServer{MediaTypes: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimePNG, v1alpha1.MimeMP4}}},
		"no JPEG":      {"it is no list of what can be uploaded", `"supported_mime_types":["audio/mp3"]`, v1alpha1.MastodonServer{}},
		"no list":      {"other limits count nevertheless", `"supported_mime_types":"image/jpeg","video_frame_rate_limit":60`, v1alpha1.MastodonServer{MaxVideoFrameRate: 60}},
		"strange list": {"its other entries count", `"supported_mime_types":[null,{},"image/jpeg","video/mp4"]`, v1alpha1.MastodonServer{MediaTypes: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimeMP4}}},
	} {
		tc.want.MaxCharacters = 500
		got := parseLimits([]byte(`{"configuration":{"statuses":{"max_characters":500},"media_attachments":{` + tc.media + `}}}`))
		if diff := cmp.Diff(&tc.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestFilesOnServer tests which files are allowed by a server's limits.
func TestFilesOnServer(t *testing.T) {
	t.Parallel()
	image := func(mime v1alpha1.MimeType, width, height int) platforms.File {
		return platforms.File{MIMEType: mime, Size: 1000, Width: width, Height: height}
	}
	video := func(mime v1alpha1.MimeType, width, height int, rate float64) platforms.File {
		return platforms.File{MIMEType: mime, Size: 1000, Width: width, Height: height, FrameRate: rate}
	}
	for name, tc := range map[string]struct {
		reason  string
		server  v1alpha1.MastodonServer
		file    platforms.File
		problem string
	}{
		"WebP":             {"Mastodon accepts it", v1alpha1.MastodonServer{}, image(v1alpha1.MimeWebP, 10, 10), ""},
		"WebP, older":      {"it is converted", v1alpha1.MastodonServer{MediaTypes: []v1alpha1.MimeType{v1alpha1.MimeJPEG}}, image(v1alpha1.MimeWebP, 10, 10), "image"},
		"8K":               {"Mastodon's default permits it", v1alpha1.MastodonServer{}, image(v1alpha1.MimeJPEG, 7680, 4320), ""},
		"a wide panorama":  {"only the number of pixels counts", v1alpha1.MastodonServer{}, image(v1alpha1.MimeJPEG, 16000, 2000), ""},
		"8K, fewer pixels": {"it is converted", v1alpha1.MastodonServer{MaxImagePixels: 16777216}, image(v1alpha1.MimeJPEG, 7680, 4320), "image"},
		"large":            {"it is converted", v1alpha1.MastodonServer{MaxImageBytes: 999}, image(v1alpha1.MimeJPEG, 10, 10), "image"},
		"4K":               {"Mastodon's default permits it", v1alpha1.MastodonServer{}, video(v1alpha1.MimeMP4, 3840, 2160, 120), ""},
		"a large square":   {"no side exceeds 4K's, and the pixels do", v1alpha1.MastodonServer{}, video(v1alpha1.MimeMP4, 3840, 3840, 30), "accepts at most 8294400 in all"},
		"Full HD, less":    {"the server has fewer pixels", v1alpha1.MastodonServer{MaxVideoPixels: 2_000_000}, video(v1alpha1.MimeMP4, 1920, 1080, 30), "accepts at most 2000000 in all"},
		"slow motion":      {"Mastodon's default permits it", v1alpha1.MastodonServer{}, video(v1alpha1.MimeMP4, 1280, 720, 120), ""},
		"slow motion, 60":  {"the server has fewer frames", v1alpha1.MastodonServer{MaxVideoFrameRate: 60}, video(v1alpha1.MimeMP4, 1280, 720, 120), "accepts at most 60"},
		"a phone's video":  {"Mastodon accepts it", v1alpha1.MastodonServer{}, video(v1alpha1.MimeQuickTime, 1280, 720, 30), ""},
		"QuickTime, no":    {"the server names the others", v1alpha1.MastodonServer{MediaTypes: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimeMP4}}, video(v1alpha1.MimeQuickTime, 1280, 720, 30), "is of type video/quicktime; Mastodon accepts video/mp4"},
	} {
		rules := New(Config{}, nil).Capabilities().Of(&v1alpha1.ConnectionStatus{Mastodon: &tc.server})
		problem := strings.Join(rules.Videos.Problems(&tc.file, "Mastodon"), "; ")
		if !tc.file.IsVideo() {
			problem = map[bool]string{false: "image"}[rules.Images.Accepts(&tc.file)]
		}
		if !strings.HasSuffix(problem, tc.problem) || (problem == "") != (tc.problem == "") {
			t.Errorf("%s: %s: the problem is %q, want %q", name, tc.reason, problem, tc.problem)
		}
	}
}

// TestServerWithoutVideos tests a server that does not accept videos.
func TestServerWithoutVideos(t *testing.T) {
	t.Parallel()
	rules := New(Config{}, nil).Capabilities()
	own := rules.Of(&v1alpha1.ConnectionStatus{Mastodon: &v1alpha1.MastodonServer{MediaTypes: []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimePNG}, MaxAltText: 420}})
	if own.Allows(v1alpha1.CategoryVideo) || own.Card.MaxVideos != 0 || !own.Allows(v1alpha1.CategoryImage) || own.MaxAltText != 420 {
		t.Errorf("the server's rules are %+v", own)
	}
	if !rules.Allows(v1alpha1.CategoryVideo) || rules.MaxAltText != 0 || !slices.Contains(rules.Images.Types, v1alpha1.MimeWebP) {
		t.Errorf("one account's server changed the rules of others: %+v", rules)
	}
}
