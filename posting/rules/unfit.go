// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
)

// UnfitFiles returns, for each connection, the errors of Validate that a post to it alone would have because its
// platform does not accept the post's files or their number. It does not return errors about texts, which a user can
// still write for that connection, errors that all connections have, or categories that the platform does not accept.
func UnfitFiles(post *v1alpha1.Post, env Env, connections []*v1alpha1.Connection) []field.ErrorList {
	found := make([]field.ErrorList, len(connections))
	if len(ValidateFiles(post)) > 0 {
		return found
	}
	files := post.DeepCopy()
	files.Spec.Draft = false
	if files.Spec.Tree != nil {
		for i := range files.Spec.Tree.Cards {
			files.Spec.Tree.Cards[i].Caption = ""
		}
	}
	spec := field.NewPath("spec")
	anywhere := validation{post: files, env: env}
	always := anywhere.content(spec)
	for i, connection := range connections {
		limits, ok := env.Capabilities(connection.Spec.Platform)
		limits = limits.Of(&connection.Status)
		if !ok || !limits.Allows(post.Spec.Category) {
			continue
		}
		there := validation{post: files, env: env}
		there.addDestination(connection, limits)
		found[i] = slices.DeleteFunc(there.content(spec), func(err *field.Error) bool {
			return slices.ContainsFunc(always, func(other *field.Error) bool { return err.Error() == other.Error() })
		})
	}
	return found
}
