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

// told is an update of an index.
type told func(x *postindex.Index)

func upsert(version uint64, s postindex.Summary) told {
	return func(x *postindex.Index) { x.Upsert(team, s, version) }
}

func remove(version uint64, id string) told {
	return func(x *postindex.Index) { x.Delete(team, id, version) }
}

func progress(version uint64) told { return func(x *postindex.Index) { x.Watch("").Progress(version) } }

func wholeList(version uint64, posts ...listed) told {
	return func(x *postindex.Index) { relist(x, version, posts...) }
}

func TestMergesByResourceVersion(t *testing.T) {
	t.Parallel()
	cancelled := withStatus(at("a", 1), v1alpha1.PhaseCancelled)
	for name, tc := range map[string]struct {
		reason string
		feed   []told
		want   []string
	}{
		"NewestFirstTiesByID": {
			"the list is ordered by display time, newest first, and equal times by id",
			[]told{upsert(1, at("b", 1)), upsert(2, at("c", 2)), upsert(3, at("a", 1))},
			[]string{"c", "a", "b"},
		},
		"OlderEventIsPassedOver": {
			"an own write is kept until the watch reports it",
			[]told{upsert(1, at("a", 1)), upsert(2, at("b", 2)), upsert(7, at("a", 9)), upsert(5, at("a", 0))},
			[]string{"a", "b"},
		},
		"OwnWriteAfterDeletionDoesNotRevive": {
			"the watch may report creation and deletion before the response to the creation",
			[]told{upsert(5, at("a", 1)), progress(5), remove(6, "a"), progress(6), upsert(5, at("a", 1))},
			[]string{},
		},
		"OwnWriteThatWatchAlreadyTold": {
			"the same version twice is one post", []told{upsert(5, at("a", 1)), progress(5), upsert(5, at("a", 1))}, []string{"a"},
		},
		"CancelledIsNotListed": {"cancelled posts appear in no list", []told{upsert(1, at("a", 1)), upsert(2, cancelled)}, []string{}},
		"OlderEventDoesNotReviveCancelled": {
			"the watch reports the creation after the cancellation was added as an own write",
			[]told{upsert(9, cancelled), upsert(4, at("a", 1)), progress(4), upsert(9, cancelled), progress(9), upsert(4, at("a", 1))},
			[]string{},
		},
		"SameNameCreatedAnew": {
			"a name may be reused after its post was deleted",
			[]told{upsert(4, cancelled), progress(4), remove(5, "a"), progress(5), upsert(6, at("a", 1))},
			[]string{"a"},
		},
		"DeletionThatIsOlderThanTheEntry": {
			"a post that this process deleted and recreated remains", []told{upsert(8, at("a", 1)), remove(7, "a")}, []string{"a"},
		},
		"RelistKeepsNewerOwnWrites": {
			"the list was read before the own write",
			[]told{upsert(12, at("own", 3)), upsert(5, at("gone", 1)), progress(5), wholeList(10, listed{at("listed", 2), 7})},
			[]string{"own", "listed"},
		},
		"RelistDoesNotReviveCancelled": {
			"the list was read before the own cancellation", []told{upsert(12, cancelled), wholeList(10, listed{at("a", 1), 7})}, []string{},
		},
		"RelistTakesOutWhatVanished": {
			"a post may be deleted while the watch is interrupted",
			[]told{upsert(1, at("a", 1)), upsert(2, at("b", 2)), progress(2), wholeList(10, listed{at("b", 2), 2})},
			[]string{"b"},
		},
		"RelistMovesWhatChanged": {
			"a post may be changed while the watch is interrupted",
			[]told{upsert(1, at("a", 1)), upsert(2, at("b", 2)), progress(2), wholeList(10, listed{at("a", 3), 4}, listed{at("b", 2), 2})},
			[]string{"a", "b"},
		},
		"RelistThatIsBrokenOff": {
			"an incomplete list does not remove posts; the next one starts over", []told{
				wholeList(5, listed{at("a", 1), 1}, listed{at("b", 2), 2}, listed{at("c", 3), 3}),
				func(x *postindex.Index) { x.Watch("").Relist(8).Add(team, at("a", 1), 1) },
				wholeList(10, listed{at("b", 2), 2}),
			}, []string{"b"},
		},
		"OwnWriteDuringRelist": {
			"writes during a list are newer than the list, or part of it", []told{func(x *postindex.Index) {
				r := x.Watch("").Relist(10)
				r.Add(team, at("a", 1), 1)
				x.Upsert(team, at("b", 2), 11)
				x.Upsert(team, at("a", 3), 12)
				x.Upsert(team, at("deleted", 4), 9)
				r.Add(team, at("c", 0), 3)
				r.Done()
			}}, []string{"a", "b", "c"},
		},
		"RelistLeavesOutCancelled": {
			"cancelled posts appear in no list", []told{wholeList(10, listed{cancelled, 1}, listed{at("b", 1), 2})}, []string{"b"},
		},
		"RelistAfterRestoredBackupForgetsOwnWrites": {
			"writes after the backup are lost, even unreported ones",
			[]told{
				progress(100), upsert(105, at("lost", 1)), upsert(106, withStatus(at("revived", 2), v1alpha1.PhaseCancelled)),
				wholeList(50, listed{at("revived", 2), 40}),
			},
			[]string{"revived"},
		},
		"RelistAfterRestoredBackup": {
			"a restored store starts from an older version; its list is correct",
			[]told{upsert(100, at("lost", 1)), progress(100), wholeList(50, listed{at("kept", 1), 40}), upsert(51, at("new", 2))},
			[]string{"new", "kept"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := postindex.New()
			for _, tell := range tc.feed {
				tell(x)
			}
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
		"First":          {"the newest posts come first", postindex.Query{Page: 1, Limit: 2}, []string{"p4", "p3"}, 5},
		"Beyond":         {"a page beyond the last is empty but contains the total", postindex.Query{Page: 4, Limit: 2}, []string{}, 5},
		"FarBeyond":      {"a page number near the maximum integer must not overflow", postindex.Query{Page: math.MaxInt, Limit: 100}, []string{}, 5},
		"FarAndFiltered": {"a filter must not overflow either", postindex.Query{Status: v1alpha1.PhaseScheduled, Page: math.MaxInt, Limit: 100}, []string{}, 5},
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

// TestListsAreConsistent reads while a watch, our own writes and a relist change the lists. Each read is consistent:
// it is sorted, and its length equals its total.
func TestListsAreConsistent(t *testing.T) {
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

// TestWatches verifies that watches of single namespaces have independent versions: the progress of one does not affect
// another.
func TestWatches(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		do     func(x *postindex.Index)
		// a and b are the expected lists of the two namespaces.
		a, b []string
	}{
		"AnotherIsFurther": {
			reason: "b's post with version 5 is new to b's watch, although a's has version 9",
			do: func(x *postindex.Index) {
				x.Watch("a").Progress(9)
				x.Watch("b").Progress(4)
				x.Upsert("b", at("q", 1), 5)
			},
			b: []string{"q"},
		},
		"ItsOwnIsFurther": {
			reason: "b's watch has reported the deletion",
			do: func(x *postindex.Index) {
				x.Watch("a").Progress(4)
				x.Watch("b").Progress(9)
				x.Upsert("b", at("q", 1), 5)
			},
		},
		"RelistOfOne": {
			reason: "a's list does not contain b's post",
			do: func(x *postindex.Index) {
				x.Upsert("a", at("p", 1), 1)
				x.Upsert("b", at("q", 1), 2)
				r := x.Watch("a").Relist(8)
				r.Add("a", at("r", 2), 7)
				r.Done()
			},
			a: []string{"r"}, b: []string{"q"},
		},
		"RestoredForOne": {
			reason: "a's watch detects the restore first; b follows with its own list",
			do: func(x *postindex.Index) {
				x.Watch("a").Progress(20)
				x.Watch("b").Progress(20)
				x.Upsert("a", at("p", 1), 30)
				x.Upsert("b", at("q", 1), 31)
				x.Watch("a").Relist(10).Done()
			},
			b: []string{"q"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := postindex.New()
			tc.do(x)
			for namespace, want := range map[string][]string{"a": tc.a, "b": tc.b} {
				page, _ := x.List(namespace, postindex.Query{Page: 1, Limit: 9})
				if got := ids(page); !slices.Equal(got, want) {
					t.Errorf("%s: namespace %s lists %v, want %v", tc.reason, namespace, got, want)
				}
			}
		})
	}
}
