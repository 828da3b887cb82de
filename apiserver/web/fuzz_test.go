// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
)

// Whatever a form holds: what is made of it is bounded, and a form made of that reads the same.
func FuzzWriting(f *testing.F) {
	f.Add("category=text&target=a&target=b&own-a=Hello&when=now")
	f.Add("category=video&video=m-1&thumbnail=1e999&target=a&title-a=%20x%20&when=at&at=2026-12-01T09%3A00&zone=Europe%2FBerlin")
	f.Add("category=tree&cards=99999999999&card-0=%0D%0A&media-0=m-1&media-1=m-2&tiktok-a=1&privacy-a=SELF_ONLY&target=a")
	f.Add("category=image&image=&image=%00&when=at&scheduled_at=0000-00-00T00%3A00%3A00Z&zone=..%2F..%2Fetc")
	f.Fuzz(func(t *testing.T, body string) {
		form, err := url.ParseQuery(body)
		if err != nil {
			return
		}
		written := readWriting(form)
		spec, err := written.spec(func(string) v1alpha1.Platform { return v1alpha1.PlatformTikTok })
		if len(written.cards) > maxCards || len(written.targets) > maxTargets || len(written.images) > maxMedia {
			t.Fatalf("%d cards, %d targets, %d images", len(written.cards), len(written.targets), len(written.images))
		}
		if err != nil {
			return
		}
		files := 0
		if spec.Tree != nil {
			for i := range spec.Tree.Cards {
				files += len(spec.Tree.Cards[i].MediaRefs)
			}
		}
		if files > maxFiles {
			t.Errorf("%d files", files)
		}
		if spec.Video != nil && spec.Video.ThumbnailOffsetMillis != nil && *spec.Video.ThumbnailOffsetMillis < 0 {
			t.Errorf("the picture is to be taken %d ms before the film begins", *spec.Video.ThumbnailOffsetMillis)
		}
		// The editor shows a stored post in the same form.
		writingOf(&spec, time.UTC)
	})
}

// Whatever a person enters as the post that they found: an id is one that a verdict takes.
func FuzzFoundID(f *testing.F) {
	for _, found := range []string{
		"1991000000000000001", "https://x.com/a/status/1991000000000000001?s=20", "youtu.be/dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
		"https://m.facebook.com/story.php?story_fbid=1&id=2", "https://www.facebook.com/9/posts/1", "facebook.com/", "https://evil.example/a/status/1", "a,1=posted:2", "//", "/",
	} {
		f.Add(found, "42")
	}
	platforms := []v1alpha1.Platform{
		v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformInstagram, v1alpha1.PlatformFacebook, v1alpha1.PlatformTikTok, v1alpha1.PlatformYouTube,
	}
	f.Fuzz(func(t *testing.T, found, page string) {
		for _, p := range platforms {
			id := idOf(p, page, found)
			if id == "" {
				continue
			}
			verdicts, err := attempt.ParseResolutions("0=posted:" + id)
			if err != nil || len(verdicts) != 1 || verdicts[0].ExternalID != id {
				t.Errorf("%s: %q becomes the id %q, and the verdict %+v: %v", p, found, id, verdicts, err)
			}
		}
	})
}
