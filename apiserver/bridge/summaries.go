// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/posting"
)

// FindPosts returns a page of the caller's team's posts that match a search. Archived posts are included if the search
// covers them.
func (s *Service) FindPosts(ctx context.Context, caller Caller, q *postindex.Search) (postindex.Found, error) {
	s.chargeScan(ctx, caller, q)
	if s.Archive != nil {
		found, err := s.Archive.Find(ctx, caller.Namespace, q)
		return found, archiveError("find posts", err)
	}
	found, _ := s.Index.Find(caller.Namespace, q, nil)
	return found, nil
}

// PostsByDay returns the first posts of consecutive days, and the number of posts on each day.
func (s *Service) PostsByDay(ctx context.Context, caller Caller, q *postindex.Search, bounds []time.Time) ([]postindex.Day, error) {
	s.chargeScan(ctx, caller, q.Between(bounds))
	if s.Archive != nil {
		days, err := s.Archive.Days(ctx, caller.Namespace, q, bounds)
		return days, archiveError("list the posts of some days", err)
	}
	days, _ := s.Index.Days(caller.Namespace, q, bounds, nil)
	return days, nil
}

// MaxQuery limits the text of a search, in characters.
const MaxQuery = 256

// maxQueryWords limits the words that a search compares.
const maxQueryWords = 6

// QueryWords returns the words of a search as typed, in the form of postindex.Conditions.Words. If there are too many,
// only the longest are kept, which are usually the rarest.
func QueryWords(typed string) []string {
	words := strings.Fields(text.Plain(typed))
	slices.SortStableFunc(words, func(a, b string) int { return len(b) - len(a) })
	return words[:min(len(words), maxQueryWords)]
}

// scanEach is the number of posts whose comparison in a search costs as much as a request.
const scanEach = 2000

func (s *Service) chargeScan(ctx context.Context, caller Caller, q *postindex.Search) {
	limits.MeterFrom(ctx).Whole(s.Index.Scans(caller.Namespace, q) / scanEach)
}

// Creators returns the authors and agents of the caller's team's posts in the cluster.
func (s *Service) Creators(caller Caller) postindex.Creators {
	return s.Index.Creators(caller.Namespace)
}

// wrote adds a new post to the index. find returns connections that the cache may not have yet.
func (s *Service) wrote(ctx context.Context, post *v1alpha1.Post, find func(string) *v1alpha1.Connection) {
	version, err := postindex.ParseVersion(post.ResourceVersion)
	if err != nil {
		s.Log.ErrorContext(ctx, "Cannot list a post before the watch reports it", "namespace", post.Namespace, "post", post.Name, "error", err)
		return
	}
	s.Index.Upsert(post.Namespace, summarise(post, find), version)
}

// Summarise returns a post's summary for lists.
func (s *Service) Summarise(post *v1alpha1.Post) postindex.Summary {
	return summarise(post, s.inMemory(post.Namespace))
}

// Limits on the texts in a summary, in characters: the summaries of all teams' posts are kept in memory. No platform
// allows a longer title, and no agent has a longer name.
const (
	maxListedTitle  = 256
	maxListedAgent  = 128
	maxListedAuthor = 256
	// maxWords limits the searchable text of a post, in bytes.
	maxWords = 1024
)

func summarise(post *v1alpha1.Post, find func(string) *v1alpha1.Connection) postindex.Summary {
	view := posting.Of(post)
	summary := postindex.Summary{
		ID:        post.Name,
		Status:    view.Phase(),
		Category:  post.Spec.Category,
		Platforms: make([]postindex.PlatformStatus, 0, len(post.Spec.Targets)),
		DisplayAt: view.DisplayAt(),
		Bytes:     int(view.Footprint()),
		Author:    text.First(post.Annotations[v1alpha1.AuthorAnnotation], maxListedAuthor),
		Agent:     text.First(post.Annotations[v1alpha1.AgentAnnotation], maxListedAgent),
		Archived:  isArchived(post),
		Handled:   isHandled(post),
	}
	platform := func(i int) v1alpha1.Platform { return platformOf(post, i, find) }
	summary.Title = text.First(view.Title(platform), maxListedTitle)
	summary.Rest = strings.TrimPrefix(text.First(view.Heading(platform), maxListedTitle), summary.Title)
	summary.Words = wordsOf(post)
	if files := view.MediaNames(); len(files) > 0 && validName(files[0]) {
		summary.Picture = files[0]
	}
	for i := range post.Spec.Targets {
		if name := post.Spec.Targets[i].ConnectionRef.Name; !slices.Contains(summary.Accounts, name) {
			summary.Accounts = append(summary.Accounts, name)
		}
		if platform := listedPlatform(post, i, find); platform != "" {
			summary.Platforms = append(summary.Platforms, postindex.PlatformStatus{
				Platform: platform, Status: view.TargetPhase(i), Mark: view.Mark(i),
			})
		}
	}
	return summary
}

// wordsOf returns the beginning of a post's distinct texts, for searches.
func wordsOf(post *v1alpha1.Post) string {
	var (
		words strings.Builder
		seen  []string
	)
	add := func(of string) bool {
		if of == "" || slices.Contains(seen, of) {
			return true
		}
		seen = append(seen, of)
		if words.Len() > 0 {
			words.WriteByte(' ')
		}
		// A letter takes at most four bytes, with or without its diacritics.
		words.WriteString(text.Plain(text.First(of, maxWords)))
		return words.Len() < maxWords
	}
	for i := range post.Spec.Targets {
		if options := post.Spec.Targets[i].YouTube; options != nil && !add(options.Title) {
			break
		}
	}
	for of := range posting.Of(post).Texts() {
		if !add(of) {
			break
		}
	}
	return strings.ToValidUTF8(words.String()[:min(words.Len(), maxWords)], "")
}
