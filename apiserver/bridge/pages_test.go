// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
)

// listedAt returns the display time of the post with an id of withPages.
func listedAt(id string) time.Time { return now.Add(time.Duration(id[1]-'0') * time.Minute) }

// withPages returns a service with five drafts; p5 is the newest.
func withPages() *bridge.Service {
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("acme"))
	for i := range uint64(5) {
		id := fmt.Sprint("p", i+1)
		s.Index.Upsert(caller.Namespace, postindex.Summary{ID: id, Status: v1alpha1.PhaseDraft, Category: v1alpha1.CategoryText, DisplayAt: listedAt(id)}, i+1)
	}
	return s
}

// pageWith returns a page of the given posts whose cursors are at the posts with the ids previous and next, if not
// empty.
func pageWith(page bridge.PostPage, previous, next string, ids ...string) bridge.PostPage {
	for _, id := range ids {
		page.Posts = append(page.Posts, postindex.Summary{ID: id})
	}
	if previous != "" {
		page.Previous = &postindex.Cursor{ID: previous, DisplayAt: listedAt(previous), Back: true}
	}
	if next != "" {
		page.Next = &postindex.Cursor{ID: next, DisplayAt: listedAt(next)}
	}
	return page
}

// diffPages compares two pages, and only the ids of their posts.
func diffPages(want, got bridge.PostPage) string {
	ids := func(posts []postindex.Summary) (ids []string) {
		for i := range posts {
			ids = append(ids, posts[i].ID)
		}
		return ids
	}
	return cmp.Diff(want, got, cmp.Transformer("IDs", ids))
}

// TestCursors verifies the cursors of a list's pages.
func TestCursors(t *testing.T) {
	t.Parallel()
	s := withPages()
	for name, tc := range map[string]struct {
		reason string
		query  postindex.Query
		want   bridge.PostPage
	}{
		"First":  {"no page is before it", postindex.Query{Page: 1, Limit: 2}, pageWith(bridge.PostPage{Total: 5, Page: 1, Limit: 2, HasNext: true}, "", "p4", "p5", "p4")},
		"Middle": {"pages are before and after it", postindex.Query{Page: 2, Limit: 2}, pageWith(bridge.PostPage{Total: 5, Page: 2, Limit: 2, HasNext: true}, "p3", "p2", "p3", "p2")},
		"Last":   {"no page is after it", postindex.Query{Page: 3, Limit: 2}, pageWith(bridge.PostPage{Total: 5, Page: 3, Limit: 2}, "p1", "", "p1")},
		"Only":   {"all posts are on it", postindex.Query{Page: 1, Limit: 5}, pageWith(bridge.PostPage{Total: 5, Page: 1, Limit: 5}, "", "", "p5", "p4", "p3", "p2", "p1")},
		"Beyond": {"a page without posts has no neighbours", postindex.Query{Page: 4, Limit: 2}, pageWith(bridge.PostPage{Total: 5, Page: 4, Limit: 2}, "", "")},
	} {
		tc.want.CoversArchive = true
		if diff := diffPages(tc.want, pageOf(t, s, caller, tc.query)); diff != "" {
			t.Errorf("%s: %s: -want +got\n%s", name, tc.reason, diff)
		}
	}
}

// TestSearchPosts verifies the pages of a search.
func TestSearchPosts(t *testing.T) {
	t.Parallel()
	s := withPages()
	after := func(id string) *postindex.Cursor { return &postindex.Cursor{ID: id, DisplayAt: listedAt(id)} }
	texts := postindex.Conditions{Category: v1alpha1.CategoryText}
	all := []string{"p5", "p4", "p3", "p2", "p1"}
	for name, tc := range map[string]struct {
		reason string
		search postindex.Search
		want   bridge.PostPage
	}{
		"First":     {"no page is before it", postindex.Search{Limit: 2}, pageWith(bridge.PostPage{Total: 5, Page: 1, Limit: 2, HasNext: true, CoversArchive: true}, "", "p4", "p5", "p4")},
		"Middle":    {"pages are before and after it", postindex.Search{Limit: 2, Cursor: after("p4")}, pageWith(bridge.PostPage{Total: 5, Page: 2, Limit: 2, HasNext: true, CoversArchive: true}, "p3", "p2", "p3", "p2")},
		"Last":      {"no page is after it", postindex.Search{Limit: 2, Cursor: after("p2")}, pageWith(bridge.PostPage{Total: 5, Page: 3, Limit: 2, CoversArchive: true}, "p1", "", "p1")},
		"Full":      {"no page is after it, although it is full", postindex.Search{Limit: 2, Cursor: after("p3")}, pageWith(bridge.PostPage{Total: 5, Page: 2, Limit: 2, CoversArchive: true}, "p2", "", "p2", "p1")},
		"Category":  {"the archive's lists lack the category", postindex.Search{Limit: 5, Conditions: texts}, pageWith(bridge.PostPage{Total: 5, Page: 1, Limit: 5}, "", "", all...)},
		"Unlimited": {"the smallest page has one post", postindex.Search{}, pageWith(bridge.PostPage{Total: 5, Page: 1, Limit: 1, HasNext: true, CoversArchive: true}, "", "p5", "p5")},
		"TooMany":   {"the largest page has a hundred posts", postindex.Search{Limit: 101}, pageWith(bridge.PostPage{Total: 5, Page: 1, Limit: 100, CoversArchive: true}, "", "", all...)},
	} {
		got, err := s.SearchPosts(t.Context(), caller, &tc.search)
		if diff := diffPages(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %s: %v, -want +got\n%s", name, tc.reason, err, diff)
		}
	}
	s.Archive = unsearchable{}
	if _, err := s.SearchPosts(t.Context(), caller, &postindex.Search{}); !errors.Is(err, errLost) {
		t.Errorf("the archive's error is lost: %v", err)
	}
}

// unsearchable is an archive that does not respond to searches.
type unsearchable struct{ bridge.Archive }

func (unsearchable) Find(context.Context, string, *postindex.Search) (postindex.Found, error) {
	return postindex.Found{}, errLost
}

// TestTargetsOfVersion1 verifies that version 1 of the API omits the targets on platforms that it does not have.
func TestTargetsOfVersion1(t *testing.T) {
	t.Parallel()
	c := inMemory("acme")
	c.memory["sky"] = account("sky", v1alpha1.PlatformBluesky, 0, nil)
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: "p1"}, Spec: saying("Hello", "sky", "acme")}
	s := service(&posts{stored: map[string]*v1alpha1.Post{"p1": post}}, c)
	s.Index.Upsert(caller.Namespace, s.Summarise(post), 1)
	version1 := caller
	version1.Version1 = true
	// The caller of version 1 comes first: what it does not see remains for the other.
	for _, tc := range []struct {
		reason string
		caller bridge.Caller
		want   []v1alpha1.Platform
	}{
		{"version 1 does not have Bluesky", version1, []v1alpha1.Platform{v1alpha1.PlatformX}},
		{"later versions have all platforms", caller, []v1alpha1.Platform{v1alpha1.PlatformBluesky, v1alpha1.PlatformX}},
	} {
		var read, listed []v1alpha1.Platform
		detail, err := s.GetPost(t.Context(), tc.caller, "p1")
		for _, target := range detail.Platforms {
			read = append(read, target.Platform)
		}
		for _, of := range pageOf(t, s, tc.caller, postindex.Query{Limit: 1}).Posts {
			for _, target := range of.Platforms {
				listed = append(listed, target.Platform)
			}
		}
		if err != nil || !slices.Equal(read, tc.want) || !slices.Equal(listed, tc.want) {
			t.Errorf("%s: read %q, listed %q, error %v, want %q", tc.reason, read, listed, err, tc.want)
		}
	}
}
