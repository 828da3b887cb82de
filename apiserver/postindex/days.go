// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex

import (
	"slices"
	"time"

	"github.com/herald-social/herald/internal/archive/lists"
)

// Day is a part of a calendar.
type Day struct {
	// Posts are the day's first posts, earliest first.
	Posts []Summary
	// Total is the number of the day's posts.
	Total int
}

// Between returns the search with the bounds of consecutive days, as for Days.
func (q *Search) Between(bounds []time.Time) *Search {
	within := *q
	within.From, within.To = bounds[0], bounds[len(bounds)-1]
	return &within
}

// Days returns the posts of consecutive days, up to q.Limit of each. The bounds are in ascending order; day i lasts
// from bounds[i] to bounds[i+1]. Days ignores the search's bounds, order and cursor.
func (x *Index) Days(namespace string, q *Search, bounds []time.Time, rows map[lists.ID][]*lists.Row) ([]Day, Missing) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	q = q.Between(bounds)
	of, missing := x.sequence(namespace, q, rows)
	if missing.View != nil {
		return nil, missing
	}
	positions := make([]int, len(bounds))
	for i, bound := range bounds {
		positions[i] = of.position(before(bound))
	}
	if missing = of.lacks(); missing.View != nil {
		return nil, missing
	}
	days := make([]Day, len(bounds)-1)
	for i := range days {
		end, total := positions[i], positions[i]-positions[i+1]
		size := min(total, q.Limit)
		days[i] = Day{Posts: of.page(end-size, size, nil), Total: total}
		slices.Reverse(days[i].Posts)
	}
	return days, of.lacks()
}
