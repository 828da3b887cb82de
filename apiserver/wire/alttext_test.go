// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// altTextsOf returns a post's alt texts, in the order of its files.
func altTextsOf(spec *v1alpha1.PostSpec) (texts []string) {
	for ref := range spec.MediaReferences() {
		texts = append(texts, ref.AltText)
	}
	return texts
}

func TestAltTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", v1alpha1.MaxAltText)
	for name, tc := range map[string]struct {
		reason, body string
		want         []string
		wrong        string
	}{
		"Images":       {"one for each, and null leaves it to the file", `{"category":"image","media_ids":["a","b","a"],"alt_texts":["A cat",null,"The cat again"]}`, []string{"A cat", "", "The cat again"}, ""},
		"None":         {"files may have their own texts", `{"category":"image","media_ids":["a"]}`, []string{""}, ""},
		"Empty":        {"an empty list counts as omitted", `{"category":"image","media_ids":["a"],"alt_texts":[]}`, []string{""}, ""},
		"Video":        {"a video has one", `{"category":"video","media_id":"a","alt_text":"A cat"}`, []string{"A cat"}, ""},
		"Cards":        {"each card has its own", `{"category":"tree","tree_cards":[{"media_ids":["a"],"alt_texts":["A cat"]},{"caption":"b"}]}`, []string{"A cat"}, ""},
		"Longest":      {"characters count, not bytes", `{"category":"video","media_id":"a","alt_text":"` + long + `"}`, []string{long}, ""},
		"TooLong":      {"platforms' limits", `{"category":"video","media_id":"a","alt_text":"` + long + `e"}`, nil, "alt_text: must have at most 1000 characters"},
		"TooFew":       {"each text needs one file", `{"category":"image","media_ids":["a","b"],"alt_texts":["A cat"]}`, nil, "alt_texts: has 1 items, and media_ids 2"},
		"CardTooMany":  {"the same for cards, with the card's path", `{"category":"tree","tree_cards":[{"caption":"a","alt_texts":["A cat"]},{"caption":"b"}]}`, nil, "tree_cards[0].alt_texts: has 1 items"},
		"NotAList":     {"texts have an order", `{"category":"image","media_ids":["a"],"alt_texts":"A cat"}`, nil, "alt_texts: must be an array"},
		"NotAText":     {"the path names the item", `{"category":"image","media_ids":["a"],"alt_texts":[7]}`, nil, "alt_texts[0]: must be a string or null"},
		"OfOthers":     {"the video's field has no effect on images", `{"category":"image","media_ids":["a"],"alt_text":7}`, []string{""}, ""},
		"BeforeAuthor": {"the category decides which field applies", `{"media_ids":["a"],"alt_texts":["A cat"]}`, nil, "category: is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.TrimSuffix(tc.body, "}") + `,"targets":[{"connection_id":"c"}]}`
			body, err := strictjson.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := CreatePostV2(body)
			switch {
			case tc.wrong != "":
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("%s: %v, want %q", tc.reason, err, tc.wrong)
				}
				return
			case err != nil:
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, altTextsOf(&got.Spec)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			before, err := strictjson.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			v1, _ := CreatePost(before)
			if without := strings.Join(altTextsOf(&v1.Spec), ""); without != "" {
				t.Errorf("version 1 reads %q", without)
			}
		})
	}
}

// TestUnchangedAltTexts verifies that an update keeps the alt texts of files that it lists without texts.
func TestUnchangedAltTexts(t *testing.T) {
	t.Parallel()
	images := v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "a", AltText: "A cat"}, {Name: "b"}}}}
	tree := v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{MediaRefs: images.Image.MediaRefs}, {Caption: "c"}}}}
	for name, tc := range map[string]struct {
		reason string
		stored v1alpha1.PostSpec
		body   string
		want   []string
	}{
		"Moved":     {"the text follows its file", images, `{"media_ids":["b","a"]}`, []string{"", "A cat"}},
		"TextsOnly": {"the files stay", images, `{"alt_texts":["A dog","A bird"]}`, []string{"A dog", "A bird"}},
		"Removed":   {"an empty list removes all", images, `{"alt_texts":[]}`, []string{"", ""}},
		"Card":      {"in trees, too", tree, `{"tree_cards":[{"caption":"c"},{"media_ids":["a","n"]}]}`, []string{"A cat", ""}},
		"CardTexts": {"a card's own texts apply", tree, `{"tree_cards":[{"caption":"c"},{"media_ids":["a"],"alt_texts":["A dog"]}]}`, []string{"A dog"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := strictjson.Parse([]byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			got := UpdatePost(body, &tc.stored)
			if problems, _ := body.Problems(); len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(tc.want, altTextsOf(&got.Spec)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
