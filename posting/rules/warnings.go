// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Warnings returns warnings about captions that only some apps or accounts may publish. The post remains valid.
func Warnings(post *v1alpha1.Post, env Env) []string {
	var warnings []string
	warned := map[v1alpha1.Platform]bool{}
	spec := field.NewPath("spec")
	for i := range post.Spec.Targets {
		conn := env.connection(post.Spec.Targets[i].ConnectionRef.Name)
		if conn == nil {
			continue
		}
		platform := conn.Spec.Platform
		limits, ok := env.Capabilities(platform)
		if !ok || limits.CaptionWarning == nil {
			continue
		}
		add := func(text string, path *field.Path) {
			if words := limits.CaptionWarning(text); words != "" {
				warnings = append(warnings, fmt.Sprintf("%s: the caption %s", path, words))
			}
		}
		if tree := post.Spec.Tree; tree == nil {
			add(post.Spec.Targets[i].Caption, spec.Child("targets").Index(i).Child("caption"))
		} else if !warned[platform] {
			for at := range tree.Cards {
				add(tree.Cards[at].Caption, spec.Child("tree", "cards").Index(at).Child("caption"))
			}
		}
		warned[platform] = true
	}
	return warnings
}
