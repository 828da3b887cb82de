// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"slices"
)

// item is a row in a list of posts or of names.
type item interface {
	key() SortKey
	finishedAt() int64
}

type run[T item] struct {
	// The run replaces the segments [from, to). If they are equal, it inserts.
	from, to int
	// put are rows to add or to replace by key, and drop are keys to remove. Both are sorted, and no key is in both.
	put  []T
	drop []SortKey
}

// plan returns the parts of a chain that a change affects. A run is one segment, plus the next one if less than a
// quarter of the maximum number of rows would remain. This way, a merge that affects a whole list has only a few
// segments in memory at a time.
func plan[T item](c chain, put []T, drop []SortKey, most int) []run[T] {
	var runs []run[T]
	open := func(segment int) *run[T] {
		if n := len(runs); n > 0 {
			last := &runs[n-1]
			if segment < last.to || len(c) == 0 {
				return last
			}
			if segment == last.to && last.isSmall(c, most) {
				last.to++
				return last
			}
			last.absorb(c, segment, most)
			if segment < last.to {
				return last
			}
		}
		runs = append(runs, run[T]{from: segment, to: min(segment+1, len(c))})
		return &runs[len(runs)-1]
	}
	for len(put) > 0 || len(drop) > 0 {
		if len(drop) == 0 || len(put) > 0 && put[0].key().Compare(drop[0]) < 0 {
			r := open(max(c.at(put[0].key()), 0))
			r.put = append(r.put, put[0])
			put = put[1:]
			continue
		}
		r := open(max(c.at(drop[0]), 0))
		r.drop = append(r.drop, drop[0])
		drop = drop[1:]
	}
	if n := len(runs); n > 0 {
		runs[n-1].absorb(c, len(c), most)
	}
	return runs
}

// isSmall reports whether the run would leave too few rows. The first segment may have few: most posts are added there.
func (r *run[T]) isSmall(c chain, most int) bool {
	rows := len(r.put) - len(r.drop)
	for i := r.from; i < r.to; i++ {
		rows += c[i].Count
	}
	return r.from > 0 && rows < most/4
}

// absorb extends a run that would leave too few rows with the next segment, unless that belongs to another run.
func (r *run[T]) absorb(c chain, before, most int) {
	if r.to < min(before, len(c)) && r.isSmall(c, most) {
		r.to++
	}
}

func (r *run[T]) apply(rows []T) []T {
	put, drop := r.put, r.drop
	out := make([]T, 0, len(rows)+len(put))
	for _, row := range rows {
		k := row.key()
		for len(put) > 0 && put[0].key().Compare(k) < 0 {
			out, put = append(out, put[0]), put[1:]
		}
		for len(drop) > 0 && drop[0].Compare(k) < 0 {
			drop = drop[1:]
		}
		switch {
		case len(put) > 0 && put[0].key() == k:
			out, put = append(out, put[0]), put[1:]
		case len(drop) > 0 && drop[0] == k:
		default:
			out = append(out, row)
		}
	}
	return append(out, put...)
}

// cut divides a run's rows into segments. At the start of a list, where most rows are added, all segments but the first
// are full; elsewhere all have the same size.
func (r *run[T]) cut(rows []T, most int) [][]T {
	if len(rows) == 0 {
		return nil
	}
	var parts [][]T
	if r.from == 0 {
		for len(rows) > most {
			end := len(rows) - most*3/4
			parts = append(parts, rows[end:])
			rows = rows[:end]
		}
		parts = append(parts, rows)
		slices.Reverse(parts)
		return parts
	}
	n := (len(rows) + most - 1) / most
	for i := range n {
		parts = append(parts, rows[i*len(rows)/n:(i+1)*len(rows)/n])
	}
	return parts
}

func summary[T item](id ID, rows []T) Segment {
	s := Segment{ID: id, First: rows[0].key(), Count: len(rows), oldest: rows[0].finishedAt()}
	for _, r := range rows[1:] {
		s.oldest = min(s.oldest, r.finishedAt())
	}
	return s
}

func spliced[T item](c chain, runs []run[T], fresh [][]Segment) (out chain, gone []ID) {
	next := 0
	for i, r := range runs {
		out = append(out, c[next:r.from]...)
		out = append(out, fresh[i]...)
		for _, s := range c[r.from:r.to] {
			gone = append(gone, s.ID)
		}
		next = r.to
	}
	out = append(out, c[next:]...)
	out.number()
	return out, gone
}
