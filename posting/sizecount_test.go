// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestSizeIsThatOfJSON holds that counting comes to the same as encoding.
func TestSizeIsThatOfJSON(t *testing.T) {
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
		if rapid.Bool().Draw(t, "tree") {
			post.Spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: text.Draw(t, "card")}, {}}}
		}
		before := post.DeepCopy()
		encoded, err := json.Marshal(&post.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Size(post)-Size(&v1alpha1.Post{}), len(encoded)-stored(&v1alpha1.PostSpec{}); got != want {
			t.Errorf("%d bytes are counted, and %d are stored: %q", got, want, encoded)
		}
		if !v1alpha1.SemanticEqual(before.Spec, post.Spec) {
			t.Error("counting has changed the post")
		}
	})
}
