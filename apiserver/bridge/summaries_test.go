// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestSearchTerms verifies which parts of a post a search covers.
func TestSearchTerms(t *testing.T) {
	t.Parallel()
	to := func(account, caption, title string) v1alpha1.PostTarget {
		target := v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: account}, Caption: caption}
		if title != "" {
			target.YouTube = &v1alpha1.YouTubeOptions{Title: title}
		}
		return target
	}
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.PostSpec
		want   string
	}{
		"Same":   {"a text counts once, for any number of accounts", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("a", "Über uns", ""), to("b", "Über uns", "")}}, "uber uns"},
		"Later":  {"a repeated text does not hide a later text", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("a", "One", ""), to("b", "One", ""), to("c", "Two", "")}}, "one two"},
		"Own":    {"each account's text counts", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("a", "One", ""), to("b", "Two", "")}}, "one two"},
		"Film":   {"titles count as well", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("a", "Text", "A Film")}}, "a film text"},
		"Thread": {"each card of a thread counts", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("a", "", "")}, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "First"}, {}, {Caption: "Second"}}}}, "first second"},
		"Long":   {"the index contains the start of a text", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("a", strings.Repeat("a", 3000), "")}}, strings.Repeat("a", maxWords)},
		"Cut":    {"characters are not split", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("a", "a"+strings.Repeat("д", 3000), "")}}, "a" + strings.Repeat("д", (maxWords-1)/2)},
		"None":   {"a draft may have no text", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("a", "", "")}}, ""},
	} {
		if got := wordsOf(&v1alpha1.Post{Spec: tc.spec}); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// TestQueryWords verifies which words of a search are compared, and in which order.
func TestQueryWords(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, typed string
		want          []string
	}{
		"Plain":   {"case and diacritics do not matter", "Grün", []string{"grun"}},
		"Longest": {"long words are rare", "a launch at noon", []string{"launch", "noon", "at", "a"}},
		"Equal":   {"the typed order decides", "red one for you", []string{"red", "one", "for", "you"}},
		"Many":    {"each word takes time", "a launch at noon in seven days", []string{"launch", "seven", "noon", "days", "at", "in"}},
		"None":    {"the search has no words", "  ", nil},
	} {
		if got := QueryWords(tc.typed); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// TestSummary verifies the parts of a summary that only the web application shows.
func TestSummary(t *testing.T) {
	t.Parallel()
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Name: "p-1", Annotations: map[string]string{v1alpha1.AuthorAnnotation: "oidc:ada"}},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryImage,
			Image:    &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "m-1"}, {Name: "m-2"}}},
			Targets: []v1alpha1.PostTarget{
				{ConnectionRef: v1alpha1.LocalReference{Name: "a"}, Caption: "A caption that is longer than thirty characters"},
				{ConnectionRef: v1alpha1.LocalReference{Name: "a"}},
				{ConnectionRef: v1alpha1.LocalReference{Name: "gone"}},
			},
		},
	}
	s := summarise(post, func(string) *v1alpha1.Connection { return nil })
	if s.Title != "A caption that is longer than " || s.Rest != "thirty characters" || s.Picture != "m-1" || s.Words != "a caption that is longer than thirty characters" || s.Author != "oidc:ada" {
		t.Errorf("got %+v", s)
	}
	if diff := gocmp.Diff([]string{"a", "gone"}, s.Accounts); diff != "" {
		t.Errorf("deleted accounts can still be filtered by: -want +got\n%s", diff)
	}
	post.Spec.Image.MediaRefs[0].Name = "../m-1"
	if s := summarise(post, func(string) *v1alpha1.Connection { return nil }); s.Picture != "" {
		t.Errorf("no file can have the name %q", s.Picture)
	}
}
