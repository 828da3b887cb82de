// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package postindex_test

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

const team = "team-a"

var epoch = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

func at(id string, second int) postindex.Summary {
	return postindex.Summary{
		ID: id, Title: "title of " + id, Status: v1alpha1.PhaseScheduled, Category: v1alpha1.CategoryText,
		Platforms: []postindex.PlatformStatus{{Platform: v1alpha1.PlatformX, Status: v1alpha1.PhaseScheduled}},
		DisplayAt: epoch.Add(time.Duration(second) * time.Second),
	}
}

func withStatus(s postindex.Summary, status v1alpha1.PostPhase) postindex.Summary {
	s.Status = status
	return s
}

func ids(page []postindex.Summary) []string {
	out := []string{}
	for _, s := range page {
		out = append(out, s.ID)
	}
	return out
}

// listed is a post of a list, with its version.
type listed struct {
	postindex.Summary
	version uint64
}

// relist applies a whole list at a version.
func relist(x *postindex.Index, version uint64, posts ...listed) {
	r := x.Watch("").Relist(version)
	for _, post := range posts {
		r.Add(team, post.Summary, post.version)
	}
	r.Done()
}

func all(x *postindex.Index) []string {
	page, _ := x.List(team, postindex.Query{Page: 1, Limit: 100})
	return ids(page)
}

func TestMergesByResourceVersion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		feed   func(x *postindex.Index)
		want   []string
	}{
		"NewestFirstTiesByID": {
			reason: "the list is ordered by display time, newest first, and equal times by id",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("b", 1), 1)
				x.Upsert(team, at("c", 2), 2)
				x.Upsert(team, at("a", 1), 3)
			},
			want: []string{"c", "a", "b"},
		},
		"OlderEventIsPassedOver": {
			reason: "an own write that the watch has not told yet must not be taken back",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 1)
				x.Upsert(team, at("b", 2), 2)
				x.Upsert(team, at("a", 9), 7)
				x.Upsert(team, at("a", 0), 5)
			},
			want: []string{"a", "b"},
		},
		"OwnWriteAfterDeletionDoesNotRevive": {
			reason: "the watch may tell create and delete before the answer to the create is taken in",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 5)
				x.Watch("").Progress(5)
				x.Delete(team, "a", 6)
				x.Watch("").Progress(6)
				x.Upsert(team, at("a", 1), 5)
			},
			want: []string{},
		},
		"OwnWriteThatWatchAlreadyTold": {
			reason: "the same version twice is one post",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 5)
				x.Watch("").Progress(5)
				x.Upsert(team, at("a", 1), 5)
			},
			want: []string{"a"},
		},
		"CancelledIsNotListed": {
			reason: "cancelled posts appear in no list",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 1)
				x.Upsert(team, withStatus(at("a", 1), v1alpha1.PhaseCancelled), 2)
			},
			want: []string{},
		},
		"OlderEventDoesNotReviveCancelled": {
			reason: "the watch tells the create after the cancel was taken in as an own write",
			feed: func(x *postindex.Index) {
				x.Upsert(team, withStatus(at("a", 1), v1alpha1.PhaseCancelled), 9)
				x.Upsert(team, at("a", 1), 4)
				x.Watch("").Progress(4)
				x.Upsert(team, withStatus(at("a", 1), v1alpha1.PhaseCancelled), 9)
				x.Watch("").Progress(9)
				x.Upsert(team, at("a", 1), 4)
			},
			want: []string{},
		},
		"SameNameCreatedAnew": {
			reason: "a name may be used again once its post is gone",
			feed: func(x *postindex.Index) {
				x.Upsert(team, withStatus(at("a", 1), v1alpha1.PhaseCancelled), 4)
				x.Watch("").Progress(4)
				x.Delete(team, "a", 5)
				x.Watch("").Progress(5)
				x.Upsert(team, at("a", 1), 6)
			},
			want: []string{"a"},
		},
		"DeletionThatIsOlderThanTheEntry": {
			reason: "a name that was deleted and created anew by this process stays",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 8)
				x.Delete(team, "a", 7)
			},
			want: []string{"a"},
		},
		"RelistKeepsNewerOwnWrites": {
			reason: "the list was taken before the own write landed",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("own", 3), 12)
				x.Upsert(team, at("gone", 1), 5)
				x.Watch("").Progress(5)
				relist(x, 10, listed{at("listed", 2), 7})
			},
			want: []string{"own", "listed"},
		},
		"RelistDoesNotReviveCancelled": {
			reason: "the list was taken before the own cancel landed",
			feed: func(x *postindex.Index) {
				x.Upsert(team, withStatus(at("a", 1), v1alpha1.PhaseCancelled), 12)
				relist(x, 10, listed{at("a", 1), 7})
			},
			want: []string{},
		},
		"RelistTakesOutWhatVanished": {
			reason: "a post may be deleted while nobody watches",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 1)
				x.Upsert(team, at("b", 2), 2)
				x.Watch("").Progress(2)
				relist(x, 10, listed{at("b", 2), 2})
			},
			want: []string{"b"},
		},
		"RelistMovesWhatChanged": {
			reason: "a post may be changed while nobody watches",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("a", 1), 1)
				x.Upsert(team, at("b", 2), 2)
				x.Watch("").Progress(2)
				relist(x, 10, listed{at("a", 3), 4}, listed{at("b", 2), 2})
			},
			want: []string{"a", "b"},
		},
		"RelistThatIsBrokenOff": {
			reason: "half a list takes nothing out; the next one begins anew",
			feed: func(x *postindex.Index) {
				relist(x, 5, listed{at("a", 1), 1}, listed{at("b", 2), 2}, listed{at("c", 3), 3})
				x.Watch("").Relist(8).Add(team, at("a", 1), 1)
				relist(x, 10, listed{at("b", 2), 2})
			},
			want: []string{"b"},
		},
		"OwnWriteDuringRelist": {
			reason: "what is written while pages come in is newer than the list, or in it",
			feed: func(x *postindex.Index) {
				r := x.Watch("").Relist(10)
				r.Add(team, at("a", 1), 1)
				x.Upsert(team, at("b", 2), 11)
				x.Upsert(team, at("a", 3), 12)
				x.Upsert(team, at("deleted", 4), 9)
				r.Add(team, at("c", 0), 3)
				r.Done()
			},
			want: []string{"a", "b", "c"},
		},
		"RelistLeavesOutCancelled": {
			reason: "cancelled posts appear in no list",
			feed: func(x *postindex.Index) {
				relist(x, 10, listed{withStatus(at("a", 1), v1alpha1.PhaseCancelled), 1}, listed{at("b", 1), 2})
			},
			want: []string{"b"},
		},
		"RelistAfterRestoredBackupForgetsOwnWrites": {
			reason: "what was written after the backup is lost, also what the watch had not told yet",
			feed: func(x *postindex.Index) {
				x.Watch("").Progress(100)
				x.Upsert(team, at("lost", 1), 105)
				x.Upsert(team, withStatus(at("revived", 2), v1alpha1.PhaseCancelled), 106)
				relist(x, 50, listed{at("revived", 2), 40})
			},
			want: []string{"revived"},
		},
		"RelistAfterRestoredBackup": {
			reason: "a restored Kubernetes store counts from an older version again; its list is what is true",
			feed: func(x *postindex.Index) {
				x.Upsert(team, at("lost", 1), 100)
				x.Watch("").Progress(100)
				relist(x, 50, listed{at("kept", 1), 40})
				x.Upsert(team, at("new", 2), 51)
			},
			want: []string{"new", "kept"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := postindex.New()
			tc.feed(x)
			if diff := gocmp.Diff(tc.want, all(x)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if x.Len() != len(tc.want) {
				t.Errorf("%s: Len() = %d, want %d", tc.reason, x.Len(), len(tc.want))
			}
		})
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	x := postindex.New()
	for i := range 5 {
		x.Upsert(team, at(fmt.Sprintf("p%d", i), i), uint64(i+1))
	}
	x.Upsert("team-b", at("other", 9), 9)
	tests := map[string]struct {
		reason string
		query  postindex.Query
		want   []string
		total  int
	}{
		"First":          {"the newest come first", postindex.Query{Page: 1, Limit: 2}, []string{"p4", "p3"}, 5},
		"Last":           {"the last page may be short", postindex.Query{Page: 3, Limit: 2}, []string{"p0"}, 5},
		"Beyond":         {"a page beyond the last is empty but tells the total", postindex.Query{Page: 4, Limit: 2}, []string{}, 5},
		"FarBeyond":      {"a page number near the greatest integer must not overflow", postindex.Query{Page: math.MaxInt, Limit: 100}, []string{}, 5},
		"FarAndFiltered": {"nor with a filter", postindex.Query{Status: v1alpha1.PhaseScheduled, Page: math.MaxInt, Limit: 100}, []string{}, 5},
		"NoMatch":        {"a filter that nothing matches", postindex.Query{Status: v1alpha1.PhaseFailed, Page: 1, Limit: 2}, []string{}, 0},
		"Platform":       {"a filter by platform", postindex.Query{Platform: v1alpha1.PlatformX, Page: 2, Limit: 3}, []string{"p1", "p0"}, 5},
		"OtherPlatform":  {"no target on that platform", postindex.Query{Platform: v1alpha1.PlatformThreads, Page: 1, Limit: 3}, []string{}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, total := x.List(team, tc.query)
			if diff := gocmp.Diff(tc.want, ids(page)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if total != tc.total {
				t.Errorf("%s: total = %d, want %d", tc.reason, total, tc.total)
			}
		})
	}
	if page, total := x.List("team-c", postindex.Query{Page: 1, Limit: 5}); len(page) != 0 || total != 0 {
		t.Errorf("a namespace without posts lists %v, total %d", page, total)
	}
}

// TestReadersSeeWholeLists reads while a watch, our own writes and a relist change the lists. Each read is consistent:
// it is sorted, and its length equals its total.
func TestReadersSeeWholeLists(t *testing.T) {
	t.Parallel()
	const posts = 200
	x := postindex.New()
	for i := range posts {
		x.Upsert(team, at(fmt.Sprintf("p%03d", i), i), uint64(i+1))
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for reading := true; reading; {
				select {
				case <-stop:
					reading = false // one more iteration, so that every reader reads
				default:
				}
				page, total := x.List(team, postindex.Query{Status: v1alpha1.PhaseScheduled, Page: 1, Limit: 2 * posts})
				if len(page) != total || !slices.IsSortedFunc(page, func(a, b postindex.Summary) int { return b.DisplayAt.Compare(a.DisplayAt) }) {
					t.Errorf("a list of %d posts has the total %d, or is not sorted", len(page), total)
				}
			}
		})
	}
	version := uint64(posts)
	for round := range 10 {
		r := x.Watch("").Relist(version)
		for i := range posts {
			version++
			s := at(fmt.Sprintf("p%03d", i), (i*7+round)%posts)
			if i%3 == 0 {
				s.Status = v1alpha1.PhasePosted
			}
			x.Upsert(team, s, version)
			r.Add(team, s, version)
		}
		x.Delete(team, "p001", version)
		r.Done()
		x.Watch("").Progress(version)
	}
	close(stop)
	readers.Wait()
}
