// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import (
	"slices"
	"sort"

	"github.com/herald-social/herald/internal/archive/lists"
)

// version1 is a list as version 1 of the API shows it: without the posts that are beyond it, which have a list of their
// own. Most namespaces have no such posts, and their lists then cost nothing extra.
type version1 struct {
	all, beyond sequence
}

// beyond returns the filter for a list's posts that version 1 does not show. A list for one of its platforms has none.
func (q *Query) beyond() filter {
	if q.Platform != "" {
		return filter{platform: none}
	}
	return filterOf(q.Status, lists.BeyondVersion1, q.Undecided)
}

// none is the platform of no list.
const none = "none"

func (v *version1) total() int { return v.all.total() - v.beyond.total() }

func (v *version1) position(before lists.SortKey) int {
	return v.all.position(before) - v.beyond.position(before)
}

// page reads the list of all posts, starting at the page's first post.
func (v *version1) page(first, limit int, into []Summary) []Summary {
	beyond := v.beyond.total()
	if beyond == 0 {
		return v.all.page(first, limit, into)
	}
	size := min(limit, v.total()-first)
	if size <= 0 {
		return nil
	}
	// The nth post beyond version 1 has n of its kind before it.
	at := first + sort.Search(beyond, func(n int) bool {
		post := v.beyond.page(n, 1, nil)
		return len(post) == 0 || v.all.position(post[0].key())-n > first
	})
	page := slices.Grow(into[:0], size)[:0]
	for len(page) < size {
		part := v.all.page(at, limit, nil)
		if len(part) == 0 || v.lacks().View != nil {
			return nil
		}
		at += len(part)
		for i := range part {
			if len(page) < size && !lists.IsBeyondVersion1(part[i].Platforms) {
				page = append(page, part[i])
			}
		}
	}
	return page
}

func (v *version1) lacks() Missing {
	missing := v.all.lacks()
	if more := v.beyond.lacks(); more.View != nil {
		missing.View, missing.Segments = more.View, append(slices.Clip(missing.Segments), more.Segments...)
	}
	return missing
}

func (s *Summary) key() lists.SortKey {
	return lists.SortKey{DisplayAt: s.DisplayAt.UnixMilli(), Name: s.ID}
}
