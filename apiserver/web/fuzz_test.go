// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// For any form: the parsed content is limited, and rendering and parsing it again gives the same content.
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
