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
	applied := text(3, strings.Repeat("<", 60_000))
	applied.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat(`\u003c`, 180_000/5)}
	applied.Annotations["more"] = strings.Repeat(`"`, 120_000)
	for _, tt := range []struct {
		name   string
		post   *v1alpha1.Post
		want   []string
		reason string
	}{
		{"five long captions", text(5, strings.Repeat("a", 65_536)), nil, "there is room for what a platform without a limit takes"},
		{"five long captions of angle brackets", text(5, strings.Repeat("<", 60_000)), []string{"spec.targets"}, "each takes six bytes where it is stored"},
		{"of ampersands", text(5, strings.Repeat("&", 60_000)), []string{"spec.targets"}, "as does this one"},
		{"three of them", text(3, strings.Repeat("<", 60_000)), nil, "1.08 MB leave room for three ledgers"},
		{"three of them, applied", applied, []string{"spec.targets"}, "what kubectl notes beside it takes room too"},
		{"a hundred targets", text(100, strings.Repeat("a", 6_500)), nil, "650 KB leave room for a hundred ledgers"},
		{"a hundred targets with more to say", text(100, strings.Repeat("a", 7_500)), []string{"spec.targets"}, "750 KB do not"},
		{"a great tree", tree(40, 100), nil, "4,000 records fit"},
		{"a greater tree", tree(50, 100), []string{"spec.tree.cards"}, "what becomes of 5,000 cards does not fit"},
		{"the greatest tree", tree(100, 100), []string{"spec.tree.cards"}, "nor of 10,000, however short they are"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, err := range Validate(tt.post, everything) {
				got = append(got, err.Field)
				if err.Type == field.ErrorTypeNotFound || len(err.Detail) < 50 {
					t.Errorf("%v does not say what to do", err)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("%s: got %v, want %v", tt.reason, got, tt.want)
			}
		})
	}
}
