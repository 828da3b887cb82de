// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"sort"
	"time"
)

// Range selects a part of an account's posts. The zero value of a field selects everything.
type Range struct {
	// After and Before are exclusive.
	After, Before Stamp
	// From is inclusive, To exclusive.
	From, To time.Time
	// Lag hides posts younger than this; the account's own listing lag applies if it is longer.
	Lag time.Duration
	// Limit is the maximum number of posts to return; it must be positive.
	Limit int
	// Keep filters the posts; nil keeps all.
	Keep func(*Post) bool
}

// Timeline returns an account's posts in the range, newest first, and whether older ones exist. It examines only the
// returned posts and those that are deleted or filtered out.
func (s *Store) Timeline(key Key, r Range) (page []Post, more bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	a := s.accounts[key]
	if a == nil {
		return nil, false, ErrNoAccount
	}
	visible := s.clock.Now().Add(-max(r.Lag, a.info.Settings.Lag(0)))
	start, end := a.bounds(r, visible)
	for i := end - 1; i >= start; i-- {
		post := a.posts[i]
		if post.Deleted || r.Keep != nil && !r.Keep(post) {
			continue
		}
		if len(page) == r.Limit {
			return page, true, nil
		}
		page = append(page, *post)
	}
	return page, false, nil
}

// bounds returns the half-open index range of r.
func (a *account) bounds(r Range, visible time.Time) (start, end int) {
	start = sort.Search(len(a.posts), func(i int) bool {
		post := a.posts[i]
		return post.Stamp.Compare(r.After) > 0 && !post.CreatedAt().Before(r.From)
	})
	end = sort.Search(len(a.posts), func(i int) bool {
		post := a.posts[i]
		return post.CreatedAt().After(visible) ||
			(r.Before != Stamp{} && post.Stamp.Compare(r.Before) >= 0) ||
			(!r.To.IsZero() && !post.CreatedAt().Before(r.To))
	})
	return start, end
}

// Chain returns the posts of a chain, oldest first, by any author, without deleted ones.
func (s *Store) Chain(platform, root string) []Post {
	s.mu.RLock()
	defer s.mu.RUnlock()
	first := s.posts[Key{Platform: platform, ID: root}]
	if first == nil {
		return nil
	}
	var out []Post
	for _, post := range append([]*Post{first}, s.replies[Key{Platform: platform, ID: root}]...) {
		if !post.Deleted {
			out = append(out, *post)
		}
	}
	return out
}
