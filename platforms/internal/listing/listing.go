// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listing finds a job's post in a platform's listing.
package listing

import (
	"slices"
	"time"

	"github.com/herald-social/herald/platforms"
)

// Match is a listed post.
type Match struct {
	// ID is the platform's id and URL the public address.
	ID, URL string
	// At is the time of publication, or zero if unknown.
	At time.Time
}

// IsOld reports whether a time of publication is before the job's SearchFrom, at the precision of the listed times. An
// unknown time is not old.
func IsOld(job *platforms.Job, at time.Time, precision time.Duration) bool {
	return !at.IsZero() && at.Before(job.SearchFrom.Truncate(precision))
}

// BelongsToOther reports whether a post is known to belong to another job.
func BelongsToOther(job *platforms.Job, id string) bool {
	return job.BelongsToOther != nil && job.BelongsToOther(id)
}

// Matches are the posts that may be the job's post, keyed by id because pages may overlap.
type Matches map[string]Match

// Add adds a post.
func (m Matches) Add(post Match) { m[post.ID] = post }

// Since returns the posts published at or after the given time, and posts whose time is unknown.
func (m Matches) Since(at time.Time) Matches {
	newer := Matches{}
	for id, post := range m {
		if post.At.IsZero() || !post.At.Before(at) {
			newer[id] = post
		}
	}
	return newer
}

// Result returns the number of posts and the earliest one.
func (m Matches) Result() platforms.LookupResult {
	r := platforms.LookupResult{Matches: len(m)}
	for _, post := range m {
		if r.ExternalID == "" || post.At.Before(r.PostedAt) || post.At.Equal(r.PostedAt) && post.ID < r.ExternalID {
			r.ExternalID, r.ExternalURL, r.PostedAt = post.ID, post.URL, post.At
		}
	}
	return r
}

// Newest returns up to which.Limit posts since which.Since, newest first. Posts whose time is unknown come last.
func Newest(posts []platforms.ListedPost, which platforms.Recent) []platforms.ListedPost {
	since := which.Since.Truncate(time.Second)
	kept := slices.DeleteFunc(posts, func(p platforms.ListedPost) bool { return !p.At.IsZero() && p.At.Before(since) })
	slices.SortStableFunc(kept, func(a, b platforms.ListedPost) int { return b.At.Compare(a.At) })
	return kept[:min(len(kept), which.Limit)]
}
