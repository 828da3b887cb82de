// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// TestWarnings checks warnings about captions that a platform accepts only from some apps. The test platform warns
// about two dollar signs.
func TestWarnings(t *testing.T) {
	env := Env{
		Connection: func(name string) *v1alpha1.Connection {
			if name == "later" {
				return nil
			}
			return &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.Platform(name)}}
		},
		Capabilities: func(p v1alpha1.Platform) (platforms.Capabilities, bool) {
			if p == v1alpha1.PlatformX {
				return platforms.Capabilities{CaptionWarning: func(text string) string {
					if strings.Count(text, "$") > 1 {
						return "is about money"
					}
					return ""
				}}, true
			}
			return platforms.Capabilities{}, p == v1alpha1.PlatformThreads
		},
	}
	to := func(conn, caption string) v1alpha1.PostTarget {
		return v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: conn}, Caption: caption}
	}
	const words = ": the caption is about money"
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.PostSpec
		want   []string
	}{
		"caption":       {"the target is named", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("x", "$"), to("x", "$$")}}, []string{"spec.targets[1].caption" + words}},
		"others":        {"other platforms accept it", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("threads", "$$"), to("later", "$$"), to("youtube", "$$")}}, nil},
		"ordinary text": {"content that every app may post has no warning", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("x", "$")}}, nil},
		"tree": {
			"a card's text causes one warning, however many accounts it is sent to",
			v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{to("x", ""), to("x", ""), to("x", "")}, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "$$"}, {Caption: "$"}}}},
			[]string{"spec.tree.cards[0].caption" + words},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Warnings(&v1alpha1.Post{Spec: tc.spec}, env)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
