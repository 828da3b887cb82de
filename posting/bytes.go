// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import "github.com/herald-social/herald/api/v1alpha1"

// Bytes is how many bytes of its team's budget a post takes: those of Size.
func Bytes(post *v1alpha1.Post) int64 {
	return int64(Size(post))
}
