// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listing finds the post of a job among those that a platform lists.
package listing

import (
	"slices"
	"time"

	"github.com/herald-social/herald/platforms"
)

// Match is a listed post.
type Match struct {
	// ID names the post, and URL is where people see it.
	ID, URL string
	// At is when it was published; zero where the platform does not say.
	At time.Time
}

// IsOld reports whether what was published at a time is older than the job, by
// times of the given precision. What has no time is not.
func IsOld(job *platforms.Job, at time.Time, precision time.Duration) bool {
	return !at.IsZero() && at.Before(job.SearchFrom.Truncate(precision))
}

// BelongsToOther reports whether a post is known to belong to another job.
func BelongsToOther(job *platforms.Job, id string) bool {
	return job.BelongsToOther != nil && job.BelongsToOther(id)
}

// Matches are the posts that may be a job's, by their ids: pages may overlap.
type Matches map[string]Match

// Add adds a post.
func (m Matches) Add(post Match) { m[post.ID] = post }

// Since returns the posts that were published at a time or later, and those without a
// known time.
func (m Matches) Since(at time.Time) Matches {
	newer := Matches{}
	for id, post := range m {
		if post.At.IsZero() || !post.At.Before(at) {
			newer[id] = post
		}
	}
	return newer
}

// Result counts the posts and names the earliest.
func (m Matches) Result() platforms.LookupResult {
	r := platforms.LookupResult{Matches: len(m)}
	for _, post := range m {
		if r.ExternalID == "" || post.At.Before(r.PostedAt) || post.At.Equal(r.PostedAt) && post.ID < r.ExternalID {
			r.ExternalID, r.ExternalURL, r.PostedAt = post.ID, post.URL, post.At
		}
	}
	return r
}

// Newest returns the listed posts of the time that was asked for, the newest first, up to
// the limit. What has no time comes last.
func Newest(posts []platforms.ListedPost, which platforms.Recent) []platforms.ListedPost {
	since := which.Since.Truncate(time.Second)
	kept := slices.DeleteFunc(posts, func(p platforms.ListedPost) bool { return !p.At.IsZero() && p.At.Before(since) })
	slices.SortStableFunc(kept, func(a, b platforms.ListedPost) int { return b.At.Compare(a.At) })
	return kept[:min(len(kept), which.Limit)]
}
