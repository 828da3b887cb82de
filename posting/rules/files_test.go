// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// filesEnv has a five-minute video, a phone's video, an animation, and accounts on four platforms: X accepts every
// video but warns above two minutes, Facebook warns but also has a limit, TikTok's limit depends on the account, and
// Instagram accepts only JPEGs.
func filesEnv() Env {
	media := map[string]*v1alpha1.Media{
		"video": {
			ObjectMeta: metav1.ObjectMeta{Name: "video"}, Spec: v1alpha1.MediaSpec{MimeType: v1alpha1.MimeMP4, FileName: "launch.mp4"},
			Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, DurationMillis: 300_000, Width: 720, Height: 1280},
		},
		"phone": {
			ObjectMeta: metav1.ObjectMeta{Name: "phone"}, Spec: v1alpha1.MediaSpec{MimeType: v1alpha1.MimeMP4, FileName: "phone.mp4"},
			Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, DurationMillis: 60_000, Width: 720, Height: 1280, VideoCodec: "hevc"},
		},
		"animation": {
			ObjectMeta: metav1.ObjectMeta{Name: "animation"}, Spec: v1alpha1.MediaSpec{MimeType: v1alpha1.MimeWebP, FileName: "wave.webp"},
			Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, DurationMillis: 300_000, Width: 720, Height: 720, Unconvertible: "is an animation; upload a still"},
		},
	}
	limits := map[v1alpha1.Platform]platforms.Capabilities{
		v1alpha1.PlatformX: {DoubtfulVideos: platforms.VideoLimits{MaxDuration: 2 * time.Minute}, VideoDoubt: "Reports differ."},
		v1alpha1.PlatformTikTok: {
			Videos: platforms.VideoLimits{MaxDuration: 10 * time.Minute},
			MaxVideoDuration: func(account *v1alpha1.ConnectionStatus) time.Duration {
				return time.Duration(account.TikTok.MaxVideoPostDurationSeconds) * time.Second
			},
		},
		v1alpha1.PlatformFacebook: {
			Videos:         platforms.VideoLimits{MaxDuration: 4 * time.Minute},
			DoubtfulVideos: platforms.VideoLimits{MaxDuration: 2 * time.Minute, Codecs: []string{"h264"}}, VideoDoubt: "Reports differ.",
		},
		v1alpha1.PlatformInstagram: {
			Images: platforms.ImageLimits{Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG}}, DoubtfulVideos: platforms.VideoLimits{MaxDuration: 2 * time.Minute},
		},
	}
	return Env{
		Media: func(name string) *v1alpha1.Media { return media[name] },
		Connection: func(name string) *v1alpha1.Connection {
			platform, most, _ := strings.Cut(name, "-")
			c := &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.Platform(platform)}}
			c.Status.TikTok = &v1alpha1.TikTokAccount{}
			if most == "short" {
				c.Status.TikTok.MaxVideoPostDurationSeconds = 180
			}
			return c
		},
		Capabilities: func(p v1alpha1.Platform) (platforms.Capabilities, bool) {
			l, ok := limits[p]
			l.Categories, l.MaxImages = []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree}, 4
			l.Card = platforms.CardLimits{MaxItems: 4, MaxVideos: 4, Mixed: true}
			return l, ok
		},
	}
}

// TestFilesFitPlatforms checks file properties against platform limits.
func TestFilesFitPlatforms(t *testing.T) {
	show := func(conns string, files ...string) v1alpha1.PostSpec {
		var spec v1alpha1.PostSpec
		for conn := range strings.FieldsSeq(conns) {
			spec.Targets = append(spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: conn}, Caption: "hello"})
		}
		var refs []v1alpha1.MediaReference
		for _, name := range files {
			refs = append(refs, v1alpha1.MediaReference{Name: name})
		}
		if files[0] != "animation" {
			spec.Category, spec.Video = v1alpha1.CategoryVideo, &v1alpha1.VideoContent{MediaRef: refs[0]}
		} else {
			spec.Category, spec.Image = v1alpha1.CategoryImage, &v1alpha1.ImageContent{MediaRefs: refs}
		}
		return spec
	}
	thread := func(conns string, files ...string) v1alpha1.PostSpec {
		spec := show(conns, files...)
		var refs []v1alpha1.MediaReference
		for _, name := range files {
			refs = append(refs, v1alpha1.MediaReference{Name: name})
		}
		spec.Category, spec.Video, spec.Image = v1alpha1.CategoryTree, nil, nil
		spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "one"}, {Caption: "two", MediaRefs: refs}}}
		return spec
	}
	const (
		long  = `the video "launch.mp4" plays for 5 min; tiktok accepts at most 3 min; upload one that fits, or post it to the other platforms only`
		still = `instagram does not accept the image "wave.webp" as it is, and Herald cannot convert it: it is an animation; upload a still`
	)
	for name, tc := range map[string]struct {
		reason   string
		spec     v1alpha1.PostSpec
		accepted bool
		want     []string
		warnings []string
	}{
		"an account without own limits": {"the platform's limit applies", show("tiktok", "video"), false, nil, nil},
		"an account with a bound":       {"file, fact, limit and platform are named", show("tiktok-short", "video"), false, []string{"spec.video.mediaRef.name: " + long}, nil},
		"two accounts":                  {"the smaller limit applies, in any order", show("tiktok tiktok-short tiktok", "video"), false, []string{"spec.video.mediaRef.name: " + long}, nil},
		"accepted before":               {"its platform decides", show("tiktok-short", "video"), true, nil, nil},
		"in a thread":                   {"the card is named", thread("tiktok-short", "video"), false, []string{"spec.tree.cards[1].mediaRefs[0].name: " + long}, nil},
		"doubtful": {
			"a warning is not a rejection", show("x x", "video"), false, nil,
			[]string{`spec.video.mediaRef.name: the video "launch.mp4" plays for 5 min; an ordinary account of x accepts at most 2 min. Reports differ.`},
		},
		"doubtful in a thread": {
			"the card is named", thread("x", "animation", "video"), false, nil,
			[]string{`spec.tree.cards[1].mediaRefs[1].name: the video "launch.mp4" plays for 5 min; an ordinary account of x accepts at most 2 min. Reports differ.`},
		},
		"doubtful without a reason": {"a warning names its reason", show("instagram", "video"), false, nil, nil},
		"beyond a limit": {
			"a rejected video needs no warning", show("facebook", "video"), false,
			[]string{`spec.video.mediaRef.name: the video "launch.mp4" plays for 5 min; facebook accepts at most 4 min; upload one that fits, or post it to the other platforms only`},
			nil,
		},
		"doubtful, as it is": {
			"reports differ about its codec", show("facebook", "phone"), false, nil,
			[]string{`spec.video.mediaRef.name: the video "phone.mp4" is encoded as hevc; an ordinary account of facebook accepts h264. Reports differ.`},
		},
		"doubtful, and converted":           {"the platform gets another codec", show("facebook", "phone"), false, nil, nil},
		"an accepted image":                 {"the image needs no conversion", show("x", "animation"), false, nil, nil},
		"an image that is not":              {"the post would fail on one platform only, and late", show("x instagram", "animation"), false, []string{"spec.image.mediaRefs[0].name: " + still}, nil},
		"an image that is not, in a thread": {"the card is named", thread("x instagram", "animation"), false, []string{"spec.tree.cards[1].mediaRefs[0].name: " + still}, nil},
		"an image that was accepted":        {"its platform decides", show("instagram", "animation"), true, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			env := filesEnv()
			env.Accepted, env.Converts = tc.accepted, strings.HasSuffix(name, "converted")
			var got, warnings []string
			for _, err := range Validate(&v1alpha1.Post{Spec: tc.spec}, env) {
				got = append(got, err.Field+": "+err.Detail)
			}
			for _, w := range FileWarnings(&v1alpha1.Post{Spec: tc.spec}, env) {
				warnings = append(warnings, w.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
