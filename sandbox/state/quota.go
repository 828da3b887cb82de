// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"sort"
	"time"
)

// QuotaWindow is the time over which Settings.Quota counts posts.
const QuotaWindow = 24 * time.Hour

// QuotaError says that the account has used up its posts.
type QuotaError struct {
	Quota int
	// Resets is when the account may post again.
	Resets time.Time
}

// Error tells the quota and when it frees up.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("all %d posts of %s are used until %s", e.Quota, QuotaWindow, e.Resets.Format(time.RFC3339))
}

// checkQuota returns a *QuotaError when the account may not post now. Call it with the lock held.
func (a *account) checkQuota(now time.Time) error {
	quota := a.info.Settings.Quota
	if quota == nil {
		return nil
	}
	counted := a.counted(now)
	if len(counted) < *quota {
		return nil
	}
	resets := now.Add(QuotaWindow)
	if *quota > 0 {
		resets = counted[len(counted)-*quota].CreatedAt().Add(QuotaWindow)
	}
	return &QuotaError{Quota: *quota, Resets: resets}
}

// counted are the posts of the window that count against the quota, oldest first.
func (a *account) counted(now time.Time) []*Post {
	var out []*Post
	for _, post := range a.posts[a.firstSince(now.Add(-QuotaWindow)):] {
		if !post.Free {
			out = append(out, post)
		}
	}
	return out
}

// firstSince is the index of the first post made after since.
func (a *account) firstSince(since time.Time) int {
	return sort.Search(len(a.posts), func(i int) bool { return a.posts[i].CreatedAt().After(since) })
}

// QuotaUsed returns how many posts the account made in the last 24 hours that count against its quota, and how many that
// do not; deleted ones included.
func (s *Store) QuotaUsed(key Key) (counted, free int) {
	a := s.lookup(key)
	if a == nil {
		return 0, 0
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	now := s.clock.Now()
	counted = len(a.counted(now))
	return counted, len(a.posts) - a.firstSince(now.Add(-QuotaWindow)) - counted
}
