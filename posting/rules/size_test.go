// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

func TestSize(t *testing.T) {
	everything := Env{
		Connection: func(string) *v1alpha1.Connection { return &v1alpha1.Connection{} },
		Capabilities: func(v1alpha1.Platform) (platforms.Capabilities, bool) {
			return platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryTree}}, true
		},
	}
	text := func(targets int, caption string) *v1alpha1.Post {
		p := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText}}
		for range targets {
			p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "page"}, Caption: caption})
		}
		return p
	}
	tree := func(targets, cards int) *v1alpha1.Post {
		p := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: make([]v1alpha1.TreeCard, cards)}}}
		for i := range cards {
			p.Spec.Tree.Cards[i].Caption = strings.Repeat("a", 280)
		}
		for i := range targets {
			p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprintf("page-%d", i)}})
		}
		return p
	}
	applied := text(2, strings.Repeat("a", 65_000))
	applied.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("a", 131_000)}
	applied.Annotations["more"] = strings.Repeat(`"`, 1_000)
	labelled := text(3, strings.Repeat("a", 65_000))
	labelled.Labels = map[string]string{}
	for i := range 900 {
		labelled.Labels[fmt.Sprintf("example.com/%063d", i)] = "no"
	}
	for _, tt := range []struct {
		name   string
		post   *v1alpha1.Post
		want   []string
		reason string
	}{
		{"three long captions", text(3, strings.Repeat("a", 65_536)), nil, "the maximum of a platform without a limit"},
		{"four long captions", text(4, strings.Repeat("a", 65_536)), []string{"spec.targets"}, "the text alone exceeds 256 KiB"},
		{"a long caption of angle brackets", text(1, strings.Repeat("<", 60_000)), []string{"spec.targets"}, "each is stored as six bytes"},
		{"a long caption of ampersands", text(1, strings.Repeat("&", 60_000)), []string{"spec.targets"}, "each ampersand is stored as six bytes"},
		{"a shorter one", text(1, strings.Repeat("<", 43_000)), nil, "258 KB are within 256 KiB"},
		{"applied by kubectl", applied, []string{"spec.targets"}, "kubectl's annotation counts too"},
		{"with labels", labelled, []string{"spec.targets"}, "labels have no separate limit"},
		{"a hundred targets", text(100, strings.Repeat("a", 2_500)), nil, "2,500 characters for each of a hundred accounts"},
		{"a hundred targets with longer texts", text(100, strings.Repeat("a", 2_700)), []string{"spec.targets"}, "270 KB exceed a post's limit"},
		{"a great tree", tree(40, 100), nil, "4,000 records fit"},
		{"a greater tree", tree(50, 100), []string{"spec.tree.cards"}, "the records of 5,000 cards exceed the limit"},
		{"the greatest tree", tree(100, 100), []string{"spec.tree.cards"}, "10,000 records do not fit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, err := range Validate(tt.post, everything) {
				got = append(got, err.Field)
				if err.Type == field.ErrorTypeNotFound || len(err.Detail) < 50 {
					t.Errorf("%v has no remedy", err)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("%s: got %v, want %v", tt.reason, got, tt.want)
			}
		})
	}
}

// TestSizeOfStored changes posts stored by an earlier version with a 1.5 MiB limit. They may proceed, but not grow.
func TestSizeOfStored(t *testing.T) {
	with := func(targets, characters int) *v1alpha1.Post {
		post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText}}
		for range targets {
			post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{
				ConnectionRef: v1alpha1.LocalReference{Name: "page"}, Caption: strings.Repeat("a", characters),
			})
		}
		return post
	}
	for _, tt := range []struct {
		reason       string
		stored, post *v1alpha1.Post
		want         string
	}{
		{"a new post of 840 KB is rejected, and the message contains the size and the remedy", nil, with(14, 60_000), "takes 84"},
		{"the same stored post is delivered unchanged", with(14, 60_000), with(14, 60_000), ""},
		{"the post may become smaller, and still be larger than a new one", with(14, 60_000), with(13, 60_000), ""},
		{"the post may not grow", with(14, 60_000), with(14, 60_001), "at most 84"},
		{"a small post may grow to the limit of a new one", with(1, 10), with(4, 65_000), ""},
		{"the post may not grow beyond the limit", with(1, 10), with(5, 65_000), "at most 262144"},
		{"the outcomes of a stored post must fit, however it was created", with(23, 65_000), with(23, 65_000), "shorten the captions"},
	} {
		v := validation{post: tt.post, env: Env{Stored: tt.stored}}
		errs := v.size(field.NewPath("spec"))
		if len(errs) > 1 || (len(errs) == 1) != (tt.want != "") || tt.want != "" && !strings.Contains(errs[0].Detail, tt.want) {
			t.Errorf("%s: got %v, want %q", tt.reason, errs, tt.want)
		}
	}
}
