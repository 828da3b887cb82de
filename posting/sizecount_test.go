// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// TestSizeEqualsJSON compares the measured size with the encoded size.
func TestSizeEqualsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.StringOf(rapid.RuneFrom([]rune("a<>&\"\\\n\r\t\b\f\x00\x1f\x7fé\u2028\u2029\ufffd😀"))))
		post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText}}
		for range rapid.IntRange(0, 3).Draw(t, "targets") {
			target := v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "c"}, Caption: text.Draw(t, "caption")}
			if rapid.Bool().Draw(t, "titled") {
				target.YouTube = &v1alpha1.YouTubeOptions{Title: text.Draw(t, "title")}
			}
			post.Spec.Targets = append(post.Spec.Targets, target)
		}
		shown := func() v1alpha1.MediaReference {
			return v1alpha1.MediaReference{Name: "m", AltText: text.Draw(t, "alt text")}
		}
		if rapid.Bool().Draw(t, "tree") {
			post.Spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{
				{Caption: text.Draw(t, "card")}, {}, {MediaRefs: []v1alpha1.MediaReference{{Name: "m"}, shown()}}, {MediaRefs: []v1alpha1.MediaReference{{Name: "m"}}},
			}}
		}
		if rapid.Bool().Draw(t, "image") {
			post.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{shown(), {Name: "m"}}}
		}
		if rapid.Bool().Draw(t, "video") {
			post.Spec.Video = &v1alpha1.VideoContent{MediaRef: shown()}
		}
		before := post.DeepCopy()
		encoded, err := json.Marshal(&post.Spec)
		must.Succeed(t, err)
		if got, want := Of(post).Size()-Of(&v1alpha1.Post{}).Size(), len(encoded)-encodedSize(&v1alpha1.PostSpec{}); got != want {
			t.Errorf("counted %d bytes, stored %d: %q", got, want, encoded)
		}
		if !v1alpha1.SemanticEqual(before.Spec, post.Spec) {
			t.Error("counting has changed the post")
		}
	})
}

// TestSizeDoesNotEncodeTexts measures the memory that Size takes for a long text.
func TestSizeDoesNotEncodeTexts(t *testing.T) {
	long := strings.Repeat("<", 1<<20)
	for reason, spec := range map[string]v1alpha1.PostSpec{
		"a caption is not encoded":           {Targets: []v1alpha1.PostTarget{{Caption: long}}},
		"a title is not encoded":             {Targets: []v1alpha1.PostTarget{{YouTube: &v1alpha1.YouTubeOptions{Title: long}}}},
		"a card is not encoded":              {Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: long}}}},
		"an image's alt text is not encoded": {Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{AltText: long}}}},
		"a video's alt text is not encoded":  {Video: &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{AltText: long}}},
		"a card's alt text is not encoded":   {Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{MediaRefs: []v1alpha1.MediaReference{{AltText: long}}}}}},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		size := Of(&v1alpha1.Post{Spec: spec}).Size()
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; size < 6*len(long) || taken > uint64(len(long)) {
			t.Errorf("%s: Size counts %d bytes and allocates %d", reason, size, taken)
		}
	}
}

// TestFootprint checks what is reserved for Herald's own entries.
func TestFootprint(t *testing.T) {
	post := func(targets, cards int) *v1alpha1.Post {
		p := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: make([]v1alpha1.PostTarget, targets)}}
		if cards > 0 {
			p.Spec.Category, p.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: make([]v1alpha1.TreeCard, cards)}
		}
		return p
	}
	for _, tt := range []struct {
		reason         string
		targets, cards int
		want           int64
	}{
		{"a post without targets has no records", 0, 0, 0},
		{"one target has one entry", 1, 0, 2 << 10},
		{"each of a hundred targets has one", 100, 0, 200 << 10},
		{"each target of a tree has a record of each card", 3, 4, 3 * (2<<10 + 4*256)},
	} {
		p := post(tt.targets, tt.cards)
		if got := Of(p).Footprint() - int64(Of(p).Size()); got != tt.want {
			t.Errorf("%s: %d bytes are stored, want %d", tt.reason, got, tt.want)
		}
	}
}
