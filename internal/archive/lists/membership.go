// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"context"
	"fmt"
	"slices"
)

// View returns the current lists of a team in the store.
func (w *Writer) View(ctx context.Context, of Team) (*View, error) {
	view, err := NewReader(w.bucket, 0).Open(ctx, of, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot read the archive of team %s: %w", of.Name, err)
	}
	return view, nil
}

// Has reports whether a post with the name is archived, even if cancelled. It cannot distinguish equal hashes.
func (v *View) Has(name string) bool {
	return v.HasHash(HashName(name)) || slices.ContainsFunc(v.index.head, func(r *Row) bool { return r.Name == name })
}
